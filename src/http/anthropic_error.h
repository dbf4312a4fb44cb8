// Failures as clients of Anthropic's API expect them:
// {"type":"error","error":{"type","message"}}.
//
// Tested by anthropic_form_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "http/exchange.h"
#include "json/json.h"

namespace outrider::http {

// Whether `path` is one of that API's, or below one.
bool speaks_anthropic(std::string_view path);

// `status` is HTTP's.
json::Json anthropic_error(int status, const std::string& message);

// An error that was written in another form, in this one. Other replies stay as they are.
void write_anthropic_error(HttpReply& reply);

}  // namespace outrider::http
