// The answers of POST /v1/responses: a "response" object, or the events that build it.
//
// An answer is a list of items: its reasoning, its message, its calls of functions, in the order in
// which they are said. A stream adds, fills and closes them one after another; every event has the
// next sequence_number:
//
//   response.created, response.in_progress
//   for each item: response.output_item.added
//     reasoning, message: response.content_part.added, response.reasoning_text.delta ... .done
//                         or response.output_text.delta ... .done, response.content_part.done
//     function_call:      response.function_call_arguments.delta ... .done
//     response.output_item.done
//   response.completed, response.incomplete (cut short) or response.failed, with the whole object
//
// Beside OpenAI's fields the object has "timings", "speculation" and "seed" (openai_form.h).
//
// Tested by responses_form_test.cc.
#pragma once

#include <memory>

#include "http/completion/answer_form.h"
#include "json/json.h"
#include "request/completion_request.h"

namespace outrider::http {

// `body`: the client's, whose settings the object repeats. `request`: what was made of it.
std::unique_ptr<AnswerForm> make_responses_form(const json::Json& body,
                                                const CompletionRequest& request);

}  // namespace outrider::http
