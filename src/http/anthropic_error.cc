#include "http/anthropic_error.h"

#include "http/error_reply.h"

namespace outrider::http {
namespace {

using json::Json;

constexpr std::string_view kMessages = "/v1/messages";

}  // namespace

bool speaks_anthropic(std::string_view path) {
  return path == kMessages ||
         (path.starts_with(kMessages) && path.substr(kMessages.size()).starts_with('/'));
}

Json anthropic_error(int status, const std::string& message) {
  return {{"type", "error"},
          {"error", {{"type", std::string(error_type(status).anthropic)}, {"message", message}}}};
}

void write_anthropic_error(HttpReply& reply) {
  if (!reply.failure.empty()) {
    reply.body = json::encode(anthropic_error(reply.status, reply.failure));
  }
}

}  // namespace outrider::http
