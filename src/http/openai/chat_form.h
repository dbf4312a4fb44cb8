// POST /v1/chat/completions: OpenAI's chat, its body and its answers.
//
// Beside OpenAI's fields, the chunk with the finish_reason (streamed) or the object has "timings"
// and "speculation" as the result object has them (api/completion_json.h), and "seed". Of
// several answers each choice has its own, and the object the first one's. Tools that are no
// functions are left out (CompletionTask::ignored_tools). Who asks in OpenAI's older form of tools
// is answered in it (older_calls.h).
//
// Tested by chat_form_test.cc, chat_answer_test.cc.
#pragma once

#include "base/status.h"
#include "http/access/server_options.h"
#include "http/completion/completion_task.h"
#include "json/json.h"

namespace outrider::http {

// Errors: kInvalidArgument with the field.
Result<CompletionTask> read_chat_task(json::Json body, const ServerOptions& options);

}  // namespace outrider::http
