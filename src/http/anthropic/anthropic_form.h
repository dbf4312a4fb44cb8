// The answers of POST /v1/messages: a "message" object, or the events that build it.
//
// An answer is a list of blocks: what the model thought, its text, its calls of tools, in the order
// in which they are said. A stream:
//
//   message_start, ping
//   ping                  while the prompt is read
//   for each block: content_block_start, content_block_delta ..., content_block_stop
//     thinking: thinking_delta ..., signature_delta; text: text_delta; tool_use: input_json_delta
//   message_delta (stop_reason, stop_sequence, usage), message_stop
//
// Signatures are empty: they are the service's. Beside Anthropic's fields, message_delta and the
// object have "timings", "speculation" and "seed" (openai_form.h).
//
// Tested by anthropic_form_test.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "http/completion/answer_form.h"

namespace outrider::http {

// `stops`: the client's, one of which may be the answer's stop_sequence; a template's are not.
// Without `show_thinking` there are no blocks of what the model thought.
std::unique_ptr<AnswerForm> make_anthropic_form(std::vector<std::string> stops, bool show_thinking);

}  // namespace outrider::http
