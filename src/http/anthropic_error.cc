#include "http/anthropic_error.h"

namespace outrider::http {
namespace {

using json::Json;

constexpr std::string_view kMessages = "/v1/messages";

std::string_view error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 501:
      return "invalid_request_error";  // the request has to be another one
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

}  // namespace

bool speaks_anthropic(std::string_view path) {
  return path == kMessages ||
         (path.starts_with(kMessages) && path.substr(kMessages.size()).starts_with('/'));
}

Json anthropic_error(int status, const std::string& message) {
  return {{"type", "error"},
          {"error", {{"type", std::string(error_type(status))}, {"message", message}}}};
}

void write_anthropic_error(HttpReply& reply) {
  if (!reply.failure.empty()) {
    reply.body = json::encode(anthropic_error(reply.status, reply.failure));
  }
}

}  // namespace outrider::http
