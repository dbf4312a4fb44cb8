// A conversation told in other ways, for templates that refuse it as it is.
//
//  - Ids of tool calls that are not the template's own. Mistral's takes nine letters or digits, and
//    nothing else: clients send those that the server gave them, another service's, or none.
//      call_0123456789abcdef -> nine digits of a hash of it, the same for the call and its result
//    Where there is no id, its place counts: the first result without one answers the first call.
//  - Instructions in the middle (late_instructions.h).
//
// What depends on an id or a place alone stays the same from turn to turn, so that the prompt
// begins as it did in the turn before.
//
// Tested by retold_test.cc, chat_formats_test.cc.
#pragma once

#include <optional>
#include <vector>

#include "model/chat.h"

namespace outrider::llama {

// The same conversation with nine letters or digits as each call's id. Ids that are so already
// stay. Nothing: all are, or there are no calls.
std::optional<std::vector<ChatMessage>> with_short_ids(const std::vector<ChatMessage>& messages);

// All other ways, in the order in which they are to be tried: what changes least comes first.
std::vector<std::vector<ChatMessage>> retold(const std::vector<ChatMessage>& messages);

}  // namespace outrider::llama
