// POST /v1/messages: Anthropic's API, as agents speak it. Its body.
//
//   system          a text, or blocks of type text
//   messages        roles user, assistant, system; content: a text, or blocks: text, thinking (an
//                   assistant's), tool_use (an assistant's), tool_result (a user's). Where the last
//                   one is an assistant's, the answer goes on with its text
//   tools           [{"name","description","input_schema"}]; tool_choice: {"type": auto, any, tool
//                   or none, "name", "disable_parallel_tool_use"}
//   thinking        {"type": disabled, as without it: the model answers at once, and where it
//   thinks
//                   nevertheless, since its template cannot switch that, the answer does not show
//                   it; enabled, adaptive: it may think, "display": omitted: likewise not shown}
//   output_config   {"format": {"type":"json_schema","schema"}, "effort"}
//   max_tokens, temperature, top_p, top_k, stop_sequences, stream, and our own fields
//                   (api/completion_params.h) under their names
//
// A thinking budget, cache_control, metadata and service_tier change nothing here. A tool_result
// with is_error says so at its beginning: templates know no failed calls. Tools that the service
// would run itself are left out (CompletionTask::ignored_tools).
//
// Tested by anthropic_body_test.cc.
#pragma once

#include <string>

#include "base/status.h"
#include "http/access/server_options.h"
#include "http/completion/completion_task.h"
#include "json/json.h"

namespace outrider::http {

// The form is that of anthropic_form.h. Errors: kInvalidArgument with the field; kUnsupported for
// images, documents and tools of the service.
Result<CompletionTask> read_messages_task(json::Json body, const ServerOptions& options);

// POST /v1/messages/count_tokens: the same body -> {"input_tokens"}, without answering it.
// max_tokens may be missing.
HttpReply count_tokens(ServerState& server, const HttpRequest& request);

}  // namespace outrider::http
