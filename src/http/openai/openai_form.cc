#include "http/openai/openai_form.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "api/completion_json.h"
#include "http/exchange/build_info.h"
#include "http/exchange/error_form.h"
#include "http/exchange/error_reply.h"
#include "http/exchange/file_names.h"
#include "http/exchange/random_id.h"

namespace outrider::http {

using json::Json;

namespace {

// "stop", "length", or `called` ("tool_calls"), of a complete answer.
std::string finish_reason(const Answer& answer, const char* called) {
  const FinishReason reason = answer.result()->completion.finish;
  const bool calls = answer.has_calls() && !answer.has_cut_call();
  if (calls && reason == FinishReason::kStop) return called;
  // Cut short by a time limit or by the server's end is cut short.
  return reason == FinishReason::kStop ? "stop" : "length";
}

}  // namespace

OpenAiForm::OpenAiForm(std::string_view prefix, const char* object, const char* chunk,
                       const AnswerWishes& wishes)
    : wishes_(wishes),
      id_(random_id(prefix)),
      object_(object),
      chunk_(chunk),
      created_(std::time(nullptr)) {}

void OpenAiForm::finish(const std::vector<Answer>& answers, std::string& out) {
  if (wishes_.include_usage) {
    Json chunk = head(chunk_);
    chunk["choices"] = Json::array();
    chunk["usage"] = openai_usage(answers, wishes_.n);
    chunk["timings"] = timings_json(answers.front().result()->completion);
    append_event(chunk, out);
  }
  out += "data: [DONE]\n\n";
}

void OpenAiForm::fail(const Status& error, std::string& out) {
  append_event(error_object(http_status(error.code()), failure_of(error), ErrorForm::kOpenAi), out);
  out += "data: [DONE]\n\n";
}

Json OpenAiForm::whole(const std::vector<Answer>& answers) {
  Json object = head(object_);
  object["choices"] = Json::array();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Json one = choice(answers[i]);
    one["index"] = i;
    one["finish_reason"] = finish_reason(answers[i], called());
    if (answers.size() > 1) {
      add_outcome(answers[i], one);
      add_sources(answers[i].tokens(), one);
    }
    object["choices"].push_back(std::move(one));
  }
  object["usage"] = openai_usage(answers, wishes_.n);
  add_outcome(answers.front(), object);
  add_sources(answers.front().tokens(), object);
  return object;
}

bool OpenAiForm::tells_nothing(const AnswerDelta& delta) const {
  if (!delta.silent() || (wishes_.token_sources && !delta.tokens.empty())) return false;
  return std::none_of(delta.tokens.begin(), delta.tokens.end(),
                      [](const SaidToken& token) { return told_logprob(token) != nullptr; });
}

void OpenAiForm::add_sources(const AnswerDelta& delta, Json& chunk) const {
  if (!wishes_.token_sources) return;
  add_sources(delta.tokens, chunk);
  chunk["speculation"] = {{"drafted", delta.guesses.drafted}, {"accepted", delta.guesses.accepted}};
}

void OpenAiForm::add_sources(const std::vector<SaidToken>& tokens, Json& object) const {
  if (!wishes_.token_sources) return;
  object["tokens"] = Json::array();
  for (const SaidToken& token : tokens) {
    object["tokens"].push_back(
        {{"id", token.id}, {"text", token.text}, {"by", std::string(token.by)}});
  }
}

void OpenAiForm::count(std::size_t i, const AnswerDelta& delta) {
  if (said_.size() <= i) said_.resize(i + 1);
  SaidSoFar& said = said_[i];
  if (!said.first_ms && !delta.tokens.empty()) said.first_ms = since_begin_ms();
  said.n_tokens += static_cast<std::int64_t>(delta.tokens.size());
}

void OpenAiForm::add_timings(std::size_t i, Json& chunk) const {
  if (!wishes_.timings_per_token) return;
  chunk["timings"] = timings_so_far(said_[i], prompts()[i], since_begin_ms());
}

void OpenAiForm::append_end(const Answer& answer, Json chunk, std::string& out) const {
  chunk["choices"][0]["finish_reason"] = finish_reason(answer, called());
  add_outcome(answer, chunk);
  append_event(chunk, out);
}

Json OpenAiForm::head(const char* kind) const {
  return {{"id", id_},
          {"object", kind},
          {"created", created_},
          {"model", model()},
          {"system_fingerprint", std::string(kBuildInfo)}};
}

Json OpenAiForm::chunk_with(Json choice) const {
  Json chunk = head(chunk_);
  chunk["choices"] = Json::array();
  chunk["choices"].push_back(std::move(choice));
  if (wishes_.include_usage) chunk["usage"] = Json();
  return chunk;
}

Json openai_usage(const std::vector<Answer>& answers, std::int32_t n) {
  std::int64_t prompt = 0;
  std::int64_t cached = 0;
  std::int64_t said = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Completion& c = answers[i].result()->completion;
    said += static_cast<std::int64_t>(c.tokens.size());
    if (i % static_cast<std::size_t>(n) != 0) continue;
    prompt += c.prompt_tokens;
    cached += c.cached_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", said},
          {"total_tokens", prompt + said},
          {"prompt_tokens_details", {{"cached_tokens", cached}}}};
}

Json logprobs_json(const std::vector<SaidToken>& tokens) {
  Json list = Json::array();
  for (const SaidToken& token : tokens) {
    if (const TokenLogprob* told = told_logprob(token)) list.push_back(api::logprob_json(*told));
  }
  return list;
}

void add_outcome(const Answer& answer, Json& object) {
  const CompletionResult& result = *answer.result();
  object["seed"] = result.completion.seed;
  object["timings"] = timings_json(result.completion);
  object["speculation"] = api::speculation_json(result);
  Json& reason = object["speculation"]["reason"];
  if (reason.is_string()) reason = without_folders(reason.get_ref<const std::string&>());
  api::add_kernels(result.kernels, &object);
}

}  // namespace outrider::http
