// Instructions in the middle of a conversation, which agents send and some templates refuse: theirs
// stand at its beginning ("System message must be at the beginning", Qwen3.5).
//
//   system A, system B, user C, assistant D, system E, user F
//   system "A\n\nB", user C, assistant D, user "[system] E\n\nF"
//
// What is said stays in its place, so the prompt begins as it did in the turn before. It becomes
// part of the user's message beside it, as turns must alternate in some templates.
//
// Tested by late_instructions_test.cc, chat_template_test.cc.
#pragma once

#include <optional>
#include <vector>

#include "model/chat.h"

namespace outrider::llama {

// The same conversation with a system's message at its beginning only. Nothing: it is one already.
std::optional<std::vector<ChatMessage>> without_late_instructions(
    const std::vector<ChatMessage>& messages);

}  // namespace outrider::llama
