// POST /v1/responses: OpenAI's newer API, as agents speak it. Its body.
//
//   input          a text, or items: messages ({"role","content": a text or parts of type
//                  input_text, output_text}), function_call, function_call_output, reasoning
//   instructions   a system message in front of it
//   tools          [{"type":"function","name","description","parameters"}]; tool_choice: auto,
//                  none, required, {"type":"function","name"} or allowed_tools
//   text           {"format": text, json_object or json_schema; "verbosity" changes nothing}
//   include        message.output_text.logprobs; the rest changes nothing
//   reasoning      {"effort"}: none to max
//   max_tool_calls of the service's own tools, of which there are none
//   max_output_tokens, temperature, top_p, top_logprobs, stream, and our own fields
//                  (api/completion_params.h) under their names
//
// An assistant's items that follow each other (reasoning, message, calls) are one message of the
// conversation. Nothing is stored: what refers to something that would be (previous_response_id,
// conversation, prompt, item_reference) is refused. Tools of other types, which agents send
// unasked, are left out (CompletionTask::ignored_tools), and what changes nothing of what is wished
// of the answer is said (CompletionTask::ignored).
//
// Tested by responses_body_test.cc.
#pragma once

#include "base/status.h"
#include "http/access/server_options.h"
#include "http/completion/completion_task.h"
#include "json/json.h"

namespace outrider::http {

// The form is that of responses_form.h. Errors: kInvalidArgument with the field; kUnsupported for
// what would be right elsewhere.
Result<CompletionTask> read_responses_task(json::Json body, const ServerOptions& options);

}  // namespace outrider::http
