#include "http/openai/text_form.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/escaped_bytes.h"
#include "base/utf8.h"
#include "http/completion/conversation_body.h"
#include "http/openai/openai_body.h"
#include "http/openai/openai_form.h"

namespace outrider::http {
namespace {

using json::Json;

// Code points that begin in `text`: a token may end in the middle of one.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

// A token's text as an object's key. Parts of characters would all become one replacement character
// otherwise, so they are as OpenAI has them: "bytes:\xf0\x9f".
std::string key_of(const std::string& text) {
  if (!first_invalid_utf8(text)) return text;
  std::string key = "bytes:";
  for (const char c : text) append_escaped(key, static_cast<unsigned char>(c));
  return key;
}

// {"tokens","token_logprobs","top_logprobs","text_offset"}, of tokens whose text begins `offset`
// characters behind the answer's beginning; null: none were asked for, or none is to be told.
Json logprobs_json(const std::vector<SaidToken>& tokens, std::size_t offset) {
  Json object = {{"tokens", Json::array()},
                 {"token_logprobs", Json::array()},
                 {"top_logprobs", Json::array()},
                 {"text_offset", Json::array()}};
  for (const SaidToken& token : tokens) {
    const TokenLogprob* told = told_logprob(token);
    if (told == nullptr) continue;
    Json top = Json::object();
    for (const RankedToken& other : told->top) {  // the likeliest first
      const std::string key = key_of(other.text);
      if (!top.contains(key)) top[key] = other.logprob;
    }
    // As OpenAI has it: also where it is none of the likeliest.
    const std::string chosen = key_of(told->chosen.text);
    if (!top.contains(chosen)) top[chosen] = told->chosen.logprob;
    object["tokens"].push_back(token.text);
    object["token_logprobs"].push_back(told->chosen.logprob);
    object["top_logprobs"].push_back(std::move(top));
    object["text_offset"].push_back(offset);
    offset += characters(token.text);
  }
  return object["tokens"].empty() ? Json() : object;
}

class TextForm : public OpenAiForm {
 public:
  explicit TextForm(const AnswerWishes& wishes)
      : OpenAiForm("cmpl-", "text_completion", "text_completion", wishes) {}

  void begin(std::string& out) override { (void)out; }

  void delta(std::size_t i, const AnswerDelta& delta, std::string& out) override {
    if (offsets_.size() <= i) offsets_.resize(i + 1, 0);
    count(i, delta);
    if (tells_nothing(delta)) return;
    Json chunk = chunk_of(i, delta.content, logprobs_json(delta.tokens, offsets_[i]));
    add_sources(delta, chunk);
    add_timings(i, chunk);
    append_event(chunk, out);
    offsets_[i] += characters(delta.content);
  }

  void end(std::size_t i, const Answer& answer, std::string& out) override {
    append_end(answer, chunk_of(i, "", Json()), out);
  }

 private:
  Json choice(const Answer& answer) const override {
    return {{"text", answer.reply().content}, {"logprobs", logprobs_json(answer.tokens(), 0)}};
  }

  Json chunk_of(std::size_t i, const std::string& text, Json logprobs) const {
    return chunk_with({{"text", text},
                       {"index", i},
                       {"logprobs", std::move(logprobs)},
                       {"finish_reason", Json()}});
  }

  std::vector<std::size_t> offsets_;  // characters of each answer's text so far
};

// What would change the answer, and is not done here.
void refuse_what_is_not_done(api::JsonFields& fields) {
  bool echo = false;
  std::string suffix;
  std::int32_t n = 1;
  fields.integer("n", n, 1, kMaxAnswers);
  std::int32_t best_of = n;
  fields.boolean("echo", echo);
  fields.text("suffix", suffix);
  fields.integer("best_of", best_of, 1, kMaxInt32);
  if (echo) fields.fail("echo", "echo is not supported: the answer is what follows the prompt");
  if (!suffix.empty()) {
    fields.fail("suffix", "suffix is not supported here; POST /infill fills in a middle");
  }
  if (best_of > n) {
    fields.fail("best_of", "best_of is not supported; n gives several answers to choose from");
  }
}

// Several prompts in one body: each on its own. Empty: there is one.
std::vector<Json> several_prompts(const Json& body) {
  if (!body.is_object() || !body.contains("prompt") || !body["prompt"].is_array()) return {};
  const Json& prompt = body["prompt"];
  const auto all = [&prompt](auto&& is) {
    return !prompt.empty() && std::all_of(prompt.begin(), prompt.end(), is);
  };
  const bool texts = all([](const Json& item) { return item.is_string(); });
  const bool lists = all([](const Json& item) { return item.is_array(); });
  if (!texts && !lists) return {};
  return {prompt.begin(), prompt.end()};
}

Result<std::vector<PromptPart>> read_parts(Json prompt) {
  const Json body = {{"prompt", std::move(prompt)}};
  CompletionRequest request;
  api::JsonFields fields(body, "", &openai_dialect());
  api::read_prompt(fields, request);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return std::move(request.prompt);
}

}  // namespace

Result<CompletionTask> read_text_task(Json body, const ServerOptions& options) {
  unify_logprobs(body);
  std::vector<Json> several = several_prompts(body);
  OUTRIDER_RETURN_IF_ERROR(check_prompts(several.size()));
  if (!several.empty()) body["prompt"] = std::move(several.front());
  CompletionTask task;
  AnswerWishes wishes;
  CompletionRequest request = defaults_for(body, openai_dialect(), options.defaults);
  api::JsonFields fields(body, "", &openai_dialect());
  fields.require("prompt");
  refuse_what_is_not_done(fields);
  read_openai_fields(fields, wishes, request);
  OUTRIDER_RETURN_IF_ERROR(api::finish_completion(fields, body, request));
  std::vector<std::vector<PromptPart>> prompts;
  if (!several.empty()) prompts.push_back(std::move(request.prompt));
  for (std::size_t i = 1; i < several.size(); ++i) {
    OUTRIDER_ASSIGN_OR_RETURN(std::vector<PromptPart> parts, read_parts(std::move(several[i])));
    prompts.push_back(std::move(parts));
  }
  OUTRIDER_RETURN_IF_ERROR(check_answers(std::max<std::size_t>(prompts.size(), 1), wishes.n));
  set_wishes(wishes, task);
  task.set_requests(std::move(request), wishes.n, std::move(prompts));
  task.form = std::make_unique<TextForm>(wishes);
  return task;
}

}  // namespace outrider::http
