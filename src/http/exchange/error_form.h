// Failures as clients of each API expect them.
//
//   OpenAI         {"error":{"message","type","param","code"}}, the code a text or null; at its
//                  endpoints
//   Anthropic      {"type":"error","error":{"type","message"}}; at its endpoints, and for its
//                  clients at those that both APIs have. About a "thread" with the "details" by
//                  which its own clients see that they have to go on without one
//   llama-server   as OpenAI's, the code a number, HTTP's status; elsewhere
//
// A prompt that is too long says so in the words that clients of each look for: docs/decisions.md.
//
// Tested by error_form_test.cc.
#pragma once

#include <string_view>

#include "http/exchange/exchange.h"
#include "json/json.h"

namespace outrider::http {

enum class ErrorForm { kOpenAi, kAnthropic, kLlama };

// That of the endpoint at `path`, or of what is below one.
ErrorForm error_form_at(std::string_view path);
// The same, and for endpoints of two APIs by what the client says of itself.
ErrorForm error_form_of(const HttpRequest& request);

// Whether the client is one of Anthropic's API, wherever it asks.
bool is_anthropics(const HttpRequest& request);

// `status` is HTTP's.
json::Json error_object(int status, const Failure& failure, ErrorForm form);

// The failure of `reply` in this form; other replies stay as they are.
void write_error(HttpReply& reply, ErrorForm form);

}  // namespace outrider::http
