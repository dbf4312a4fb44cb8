// OpenAI's older form of tools, which its clients no longer have but programs still send:
//
//   functions      [{"name", "description", "parameters"}], which are tools
//   function_call  "auto", "none", or {"name"}, which must be called: a tool_choice
//
// The answer has at most one call, as "function_call": {"name", "arguments"} of its message or of
// its deltas, and "function_call" as its finish_reason. (What of a conversation has that form is
// read in every chat: api/chat_params.h.)
//
// Tested by older_calls_test.cc.
#pragma once

#include "api/json_fields.h"
#include "http/completion/answer.h"
#include "json/json.h"
#include "request/completion_request.h"

namespace outrider::http {

// Reads both fields; whether either was there, so that the answer is to have that form. Beside
// "tools" or "tool_choice" they are an error. Behind what reads those.
bool read_functions(api::JsonFields& fields, CompletionRequest& request);

// Puts the only call of a message (api::message_json()) into that form.
void use_function_call(json::Json& message);
// The same of a delta, which gets "function_call" where there is more of the call.
void add_function_call(const AnswerDelta& delta, json::Json& object);

}  // namespace outrider::http
