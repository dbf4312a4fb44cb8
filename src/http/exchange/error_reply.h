// Failures as replies: a status, and what is wrong. error_form.h has the forms of their bodies.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "http/exchange/exchange.h"
#include "json/json.h"

namespace outrider::http {

// Of a reply that nobody reads, for the counts and the log. It is never sent.
inline constexpr int kClientGone = 499;

// 400 for what the client sent, 404, 429 for a full queue, 501 for what this server or model does
// not do, 503, 500.
int http_status(StatusCode code);

// What the APIs call errors of a status. Static storage.
struct ErrorType {
  int status;
  std::string_view openai;  // llama-server's, too
  std::string_view anthropic;
};
ErrorType error_type(int status);

Failure failure_of(const Status& error);

// Without a body yet: Server writes it in the form of the endpoint's API. With Retry-After where
// trying again later may work.
HttpReply error_reply(int status, const std::string& message, const std::string& field = "");
HttpReply error_reply(const Status& error);

HttpReply json_reply(const json::Json& value);

}  // namespace outrider::http
