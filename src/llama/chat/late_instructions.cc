#include "llama/chat/late_instructions.h"

#include <algorithm>
#include <string>

namespace outrider::llama {
namespace {

bool is_systems(const ChatMessage& message) { return message.role == "system"; }

void append(ChatMessage& message, const std::string& text) {
  message.content.append(message.content.empty() ? "" : "\n\n").append(text);
}

}  // namespace

std::optional<std::vector<ChatMessage>> without_late_instructions(
    const std::vector<ChatMessage>& messages) {
  if (messages.empty() || std::none_of(messages.begin() + 1, messages.end(), is_systems)) {
    return std::nullopt;
  }
  std::vector<ChatMessage> moved;
  bool open = false;  // the last one ends with instructions
  for (const ChatMessage& message : messages) {
    const bool first = moved.empty() || (moved.size() == 1 && is_systems(moved.front()));
    if (is_systems(message) && !moved.empty() && first) {
      append(moved.front(), message.content);
    } else if (is_systems(message) && !first) {
      if (moved.back().role != "user") moved.push_back({.role = "user", .content = ""});
      append(moved.back(), "[system] " + message.content);
      open = true;
    } else if (open && message.role == "user") {
      append(moved.back(), message.content);
      open = false;
    } else {
      moved.push_back(message);
      open = false;
    }
  }
  return moved;
}

}  // namespace outrider::llama
