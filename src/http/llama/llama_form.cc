#include "http/llama/llama_form.h"

#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "api/completion_json.h"
#include "base/utf8.h"
#include "http/completion/timings.h"
#include "http/exchange/error_form.h"
#include "http/exchange/error_reply.h"
#include "http/llama/llama_settings.h"
#include "http/openai/openai_form.h"

namespace outrider::http {
namespace {

using json::Json;

// JSON has no minus infinity; llama-server's clients expect a number.
double finite(double logprob) {
  return std::isfinite(logprob) ? logprob
                                : static_cast<double>(std::numeric_limits<float>::lowest());
}

Json ranked_json(const RankedToken& token, bool after_sampler) {
  const std::string shown = token.text.substr(0, complete_utf8_prefix(token.text));
  Json object = {{"id", token.id}, {"token", shown}, {"bytes", api::bytes_json(token.text)}};
  if (after_sampler) {
    object["prob"] = std::exp(token.logprob);
  } else {
    object["logprob"] = finite(token.logprob);
  }
  return object;
}

Json probabilities_json(const std::vector<SaidToken>& tokens, bool after_sampler) {
  Json list = Json::array();
  for (const SaidToken& token : tokens) {
    const TokenLogprob* told = told_logprob(token);
    if (told == nullptr) continue;
    Json object = ranked_json(told->chosen, after_sampler);
    Json& top = object[after_sampler ? "top_probs" : "top_logprobs"] = Json::array();
    for (const RankedToken& other : told->top) {
      if (after_sampler && !(std::exp(other.logprob) > 0.0)) continue;
      top.push_back(ranked_json(other, after_sampler));
    }
    list.push_back(std::move(object));
  }
  return list;
}

Json ids_json(const std::vector<SaidToken>& tokens) {
  Json ids = Json::array();
  for (const SaidToken& token : tokens) ids.push_back(token.id);
  return ids;
}

// {"a": 1, "b/c": 2} of {"a": 1, "b": {"c": 2}, ...} for the names "a", "b/c", each once. What is
// not there is left out.
Json selected(const Json& object, const std::vector<std::string>& names) {
  Json result = Json::object();
  for (const std::string& name : names) {
    if (result.contains(name)) continue;  // copied already, which may be much
    const Json* at = &object;
    for (std::size_t begin = 0; at != nullptr && begin <= name.size();) {
      const std::size_t end = std::min(name.find('/', begin), name.size());
      const std::string part = name.substr(begin, end - begin);
      at = at->is_object() && at->contains(part) ? &at->at(part) : nullptr;
      begin = end + 1;
    }
    if (at != nullptr) result[name] = *at;
  }
  return result;
}

std::string_view stop_type(const Completion& c) {
  if (c.finish != FinishReason::kStop) return "limit";
  return c.stop.empty() ? "eos" : "word";
}

class LlamaForm : public AnswerForm {
 public:
  LlamaForm(LlamaWishes wishes, LlamaAsked asked, NowMs now)
      : wishes_(std::move(wishes)),
        asked_(std::move(asked)),
        now_(std::move(now)),
        began_ms_(now_()),
        said_(asked_.prompts.size() * static_cast<std::size_t>(asked_.n)) {}

  void begin(std::string& out) override {
    for (std::size_t i = 0; i < said_.size(); ++i) progress(i, prompts()[i], 0.0, out);
  }

  void progress(std::size_t i, const PromptStats& prompt, double fraction,
                std::string& out) override {
    said_[i].read = fraction;
    if (!wishes_.return_progress) return;
    Json event = event_of(i, "", {});
    event["prompt_progress"] = prompt_progress_json(prompt, fraction, since_begin());
    append_event(event, out);
  }

  void delta(std::size_t i, const AnswerDelta& delta, std::string& out) override {
    const std::size_t n = heard(said_[i], delta);
    if (said_[i].read < 1.0) progress(i, prompts()[i], 1.0, out);
    std::string text;
    std::vector<SaidToken> tokens;
    for (const SaidToken& token : std::span(delta.tokens).first(n)) {
      text += token.text;
      tokens.push_back(token);
      if (complete_utf8_prefix(text) < text.size()) continue;
      say(i, text, tokens, out);
      text.clear();
      tokens.clear();
    }
    if (!tokens.empty()) say(i, text, tokens, out);
  }

  bool enough(std::size_t i) const override {
    const Said& said = said_[i];
    if (said.indented_too_little) return true;
    return wishes_.max_predict_ms > 0 && said.new_line && said.told.first_ms.has_value() &&
           since_begin() - *said.told.first_ms > static_cast<double>(wishes_.max_predict_ms);
  }

  void end(std::size_t i, const Answer& answer, std::string& out) override {
    append_event(final_of(i, answer, /*streamed=*/true), out);
  }

  void finish(const std::vector<Answer>& answers, std::string& out) override {
    (void)answers, (void)out;
  }

  void fail(const Status& error, std::string& out) override {
    const int status = http_status(error.code());
    append_event(error_object(status, failure_of(error), ErrorForm::kLlama), out);
  }

  void note(std::size_t i, const AnswerDelta& delta) override { (void)heard(said_[i], delta); }

  Json whole(const std::vector<Answer>& answers) override {
    if (answers.size() == 1) return final_of(0, answers[0], /*streamed=*/false);
    Json list = Json::array();
    for (std::size_t i = 0; i < answers.size(); ++i) {
      list.push_back(final_of(i, answers[i], /*streamed=*/false));
    }
    return list;
  }

 private:
  double since_begin() const { return now_() - began_ms_; }

  // Of one answer so far.
  struct Said {
    double read = 0.0;  // of the prompt, as was told
    SaidSoFar told;
    bool new_line = false;
    std::int64_t blanks = -1;  // that the line so far begins with; -1: it has more, or is the first
    std::size_t n_bytes = 0;   // of the text in front of that line
    std::size_t n_seen = 0;    // of the text
    bool indented_too_little = false;
  };

  // What enough() and final_of() have to know of what is new. How many of its tokens are told:
  // those in front of a line that begins too far left.
  std::size_t heard(Said& said, const AnswerDelta& delta) const {
    if (!said.told.first_ms && !delta.tokens.empty()) said.told.first_ms = since_begin();
    said.new_line = said.new_line || delta.content.find('\n') != std::string::npos;
    std::size_t n = 0;
    while (n < delta.tokens.size() && is_indented(said, delta.tokens[n].text)) ++n;
    return n;
  }

  // Looks at more of the text; false from the token on with which a line begins too far left.
  bool is_indented(Said& said, std::string_view text) const {
    if (wishes_.n_indent == 0) return true;
    if (said.indented_too_little) return false;
    for (const char c : text) {
      ++said.n_seen;
      if (c == '\n') {
        said.blanks = 0;
        said.n_bytes = said.n_seen;
      } else if (said.blanks >= 0 && (c == ' ' || c == '\t')) {
        ++said.blanks;
      } else if (said.blanks >= 0) {
        said.indented_too_little = said.blanks < wishes_.n_indent;
        if (said.indented_too_little) return false;
        said.blanks = -1;
      }
    }
    return true;
  }

  // What is told of the whole text.
  std::string content_of(const Said& said, const std::string& text) const {
    return said.indented_too_little ? text.substr(0, said.n_bytes) : text;
  }

  Json event_of(std::size_t i, std::string text, const std::vector<SaidToken>& tokens) const {
    return {{"index", i},
            {"content", std::move(text)},
            {"tokens", ids_json(tokens)},
            {"stop", false},
            {"id_slot", -1},
            {"tokens_predicted", said_[i].told.n_tokens},
            {"tokens_evaluated", prompts()[i].n_tokens}};
  }

  void say(std::size_t i, const std::string& text, const std::vector<SaidToken>& tokens,
           std::string& out) {
    said_[i].told.n_tokens += static_cast<std::int64_t>(tokens.size());
    Json event = event_of(i, text, tokens);
    Json probabilities = probabilities_json(tokens, wishes_.after_sampler);
    if (!probabilities.empty()) event["completion_probabilities"] = std::move(probabilities);
    if (wishes_.timings_per_token) {
      event["timings"] = timings_so_far(said_[i].told, prompts()[i], since_begin());
    }
    append_event(event, out);
  }

  Json final_of(std::size_t i, const Answer& answer, bool streamed) const {
    const CompletionResult& result = *answer.result();
    const Completion& c = result.completion;
    const std::int64_t limit = asked_.settings["n_predict"].get<std::int64_t>();
    const std::int64_t said = static_cast<std::int64_t>(c.tokens.size());
    Json settings = asked_.settings;
    settings["seed"] = c.seed;
    const bool context_full = c.finish == FinishReason::kLength && (limit < 0 || said < limit);
    Json object = {{"index", i},
                   {"content", streamed ? std::string() : content_of(said_[i], c.text)},
                   {"tokens", Json::array()},
                   {"id_slot", -1},
                   {"stop", true},
                   {"model", model()},
                   {"tokens_predicted", said},
                   {"tokens_evaluated", c.prompt_tokens},
                   {"generation_settings", std::move(settings)},
                   {"prompt", asked_.prompts[i / static_cast<std::size_t>(asked_.n)]},
                   {"has_new_line", c.text.find('\n') != std::string::npos},
                   {"truncated", result.shifted || result.prompt.truncated() || context_full},
                   {"stop_type", std::string(stop_type(c))},
                   {"stopping_word", c.stop},
                   {"tokens_cached", c.cached_tokens}};
    add_outcome(answer, object);
    if (!streamed && wishes_.return_tokens) object["tokens"] = c.tokens;
    if (!streamed) {
      Json probabilities = probabilities_json(answer.tokens(), wishes_.after_sampler);
      if (!probabilities.empty()) object["completion_probabilities"] = std::move(probabilities);
    }
    return wishes_.fields.empty() ? object : selected(object, wishes_.fields);
  }

  const LlamaWishes wishes_;
  const LlamaAsked asked_;
  const NowMs now_;
  const double began_ms_;
  std::vector<Said> said_;  // [answers]
};

}  // namespace

std::unique_ptr<AnswerForm> make_llama_form(LlamaWishes wishes, LlamaAsked asked, NowMs now) {
  return std::make_unique<LlamaForm>(std::move(wishes), std::move(asked), std::move(now));
}

}  // namespace outrider::http
