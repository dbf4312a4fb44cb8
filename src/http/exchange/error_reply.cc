#include "http/exchange/error_reply.h"

#include <utility>

namespace outrider::http {
namespace {

constexpr ErrorType kTypes[] = {
    {401, "authentication_error", "authentication_error"},
    {403, "permission_error", "permission_error"},
    {404, "not_found_error", "not_found_error"},
    {405, "not_supported_error", "invalid_request_error"},
    {413, "invalid_request_error", "request_too_large"},
    {429, "rate_limit_error", "rate_limit_error"},
    {501, "not_supported_error", "invalid_request_error"},  // the request has to be another one
    {503, "unavailable_error", "overloaded_error"},
};

}  // namespace

ErrorType error_type(int status) {
  for (const ErrorType& type : kTypes) {
    if (type.status == status) return type;
  }
  if (status >= 500) return {status, "server_error", "api_error"};
  return {status, "invalid_request_error", "invalid_request_error"};
}

int http_status(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
      return 400;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kUnsupported:
      return 501;
    case StatusCode::kResourceExhausted:
      return 429;
    case StatusCode::kCancelled:
      return 503;
    case StatusCode::kDataLoss:
    case StatusCode::kInternal:
      break;
  }
  return 500;
}

Failure failure_of(const Status& error) {
  return {.message = error.message(), .field = error.field(), .excess = error.excess()};
}

namespace {

HttpReply failed(int status, Failure failure) {
  HttpReply reply{.status = status, .failure = std::move(failure)};
  if (status == 429 || status == 503) reply.headers.emplace_back("Retry-After", "1");
  // The clients of OpenAI and Anthropic send a request again behind every status from 500 on,
  // unless they are told not to.
  if (status == 501) reply.headers.emplace_back("x-should-retry", "false");
  return reply;
}

}  // namespace

HttpReply error_reply(int status, const std::string& message, const std::string& field) {
  return failed(status, {.message = message, .field = field});
}

HttpReply error_reply(const Status& error) {
  return failed(http_status(error.code()), failure_of(error));
}

HttpReply json_reply(const json::Json& value) { return {.body = json::encode(value)}; }

}  // namespace outrider::http
