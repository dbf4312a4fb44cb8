#include "http/error_reply.h"

namespace outrider::http {
namespace {

using json::Json;

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

Json error_object(int status, const std::string& message, const std::string& field) {
  return {{"error",
           {{"message", message},
            {"type", std::string(error_type(status).openai)},
            {"param", field.empty() ? Json() : Json(field)},
            {"code", status}}}};
}

HttpReply error_reply(int status, const std::string& message, const std::string& field) {
  HttpReply reply{.status = status,
                  .body = json::encode(error_object(status, message, field)),
                  .failure = message};
  if (status == 429 || status == 503) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

HttpReply error_reply(const Status& error) {
  return error_reply(http_status(error.code()), error.message(), error.field());
}

HttpReply json_reply(const Json& value) { return {.body = json::encode(value)}; }

}  // namespace outrider::http
