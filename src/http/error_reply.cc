#include "http/error_reply.h"

namespace outrider::http {
namespace {

using json::Json;

// As OpenAI's and llama-server's clients know them.
std::string_view error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 405:
    case 501:
      return "not_supported_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "unavailable_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

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
            {"type", std::string(error_type(status))},
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

HttpReply error_reply(const api::Error& error) {
  return error_reply(http_status(error.code), error.message, error.field);
}

HttpReply json_reply(const Json& value) { return {.body = json::encode(value)}; }

}  // namespace outrider::http
