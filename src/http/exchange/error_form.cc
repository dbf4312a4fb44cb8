#include "http/exchange/error_form.h"

#include <string>

#include "http/exchange/error_reply.h"

namespace outrider::http {
namespace {

using json::Json;

// Whether `path` is `endpoint` or below it.
bool is_or_is_below(std::string_view path, std::string_view endpoint) {
  return path.starts_with(endpoint) &&
         (path.size() == endpoint.size() || path[endpoint.size()] == '/');
}

// OpenAI's names for what its clients tell apart by more than HTTP's status.
Json openai_code(int status, const Failure& failure) {
  if (failure.excess) return "context_length_exceeded";
  if (status == 401) return "invalid_api_key";
  if (status == 404 && failure.field == "model") return "model_not_found";
  if (status == 429) return "rate_limit_exceeded";
  return {};
}

// Several clients look for each service's own sentence: it stands in front of ours. LangChain's for
// OpenAI looks for Anthropic's as well.
std::string message_of(const Failure& failure, ErrorForm form) {
  if (!failure.excess || form == ErrorForm::kLlama) return failure.message;
  const std::string count = std::to_string(failure.excess->count);
  const std::string limit = std::to_string(failure.excess->limit);
  if (form == ErrorForm::kAnthropic) {
    return "prompt is too long: " + count + " tokens > " + limit + " maximum; " + failure.message;
  }
  return "This model's maximum context length is " + limit +
         " tokens, so this prompt is too long: " + failure.message;
}

}  // namespace

ErrorForm error_form_at(std::string_view path) {
  if (is_or_is_below(path, "/v1/messages")) return ErrorForm::kAnthropic;
  for (const std::string_view endpoint : {"/v1", "/chat/completions", "/responses", "/models"}) {
    if (is_or_is_below(path, endpoint)) return ErrorForm::kOpenAi;
  }
  return ErrorForm::kLlama;
}

ErrorForm error_form_of(const HttpRequest& request) {
  const bool of_both = is_or_is_below(request.path, "/v1/models");
  return of_both && is_anthropics(request) ? ErrorForm::kAnthropic : error_form_at(request.path);
}

bool is_anthropics(const HttpRequest& request) {
  return !request.header("anthropic-version").empty();
}

Json error_object(int status, const Failure& failure, ErrorForm form) {
  const ErrorType type = error_type(status);
  const std::string message = message_of(failure, form);
  if (form == ErrorForm::kAnthropic) {
    Json error = {{"type", std::string(type.anthropic)}, {"message", message}};
    if (status == 400 && failure.field == "thread") {
      error["details"] = {{"error_code", "thread_unsupported_request"},
                          {"unsupported", Json::array({"thread"})}};
    }
    return {{"type", "error"}, {"error", std::move(error)}};
  }
  Json error = {{"message", message},
                {"type", std::string(type.openai)},
                {"param", failure.field.empty() ? Json() : Json(failure.field)},
                {"code", form == ErrorForm::kOpenAi ? openai_code(status, failure) : Json(status)}};
  if (failure.excess) {
    error["type"] = "exceed_context_size_error";
    error["n_prompt_tokens"] = failure.excess->count;
    error["n_ctx"] = failure.excess->limit;
  }
  return {{"error", std::move(error)}};
}

void write_error(HttpReply& reply, ErrorForm form) {
  if (reply.failure) reply.body = json::encode(error_object(reply.status, *reply.failure, form));
}

}  // namespace outrider::http
