// The answers of POST /v1/responses: a "response" object, or the events that build it.
//
// An answer is a list of items: its reasoning, its message, its calls of functions, in the order in
// which they are said. A stream adds, fills and closes them one after another; every event has the
// next sequence_number:
//
//   response.created, response.in_progress
//   for each item: response.output_item.added
//     message:            response.content_part.added, response.output_text.delta ... .done,
//                         response.content_part.done
//     reasoning:          the same with response.reasoning_text.delta ... .done; as a summary
//                         response.reasoning_summary_part.added, ..._text.delta ... .done,
//                         ..._part.done
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
// `as_summary`: what is thought is the reasoning's "summary" in place of its "content". Clients
// show one or the other, and may send back no more than the summary.
std::unique_ptr<AnswerForm> make_responses_form(const json::Json& body,
                                                const CompletionRequest& request,
                                                bool as_summary = false);

}  // namespace outrider::http
