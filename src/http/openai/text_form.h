// POST /v1/completions: OpenAI's text completions, its body and its answers.
//
// "prompt" may be a string, an array of strings (each with an answer of its own), an array of token
// ids, or an array of such arrays. What we add to answers is as in openai_form.h.
//
// Tested by text_form_test.cc.
#pragma once

#include "base/status.h"
#include "http/access/server_options.h"
#include "http/completion/completion_task.h"
#include "json/json.h"

namespace outrider::http {

// Errors: kInvalidArgument with the field; kUnsupported for "echo", "suffix" and "best_of".
Result<CompletionTask> read_text_task(json::Json body, const ServerOptions& options);

}  // namespace outrider::http
