// Conversations with instructions anywhere. (Through templates: chat_template_test.cc.)
#include "llama/chat/late_instructions.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider::llama {
namespace {

// "sua": a system's message, a user's, an assistant's, whose texts are their places.
std::vector<ChatMessage> conversation(const std::string& roles) {
  std::vector<ChatMessage> messages;
  for (const char role : roles) {
    messages.push_back({.role = role == 's'   ? "system"
                                : role == 'u' ? "user"
                                              : "assistant",
                        .content = std::to_string(messages.size())});
  }
  return messages;
}

// "s0 u1"; "as it is" where nothing has to change.
std::string moved(const std::string& roles) {
  const std::optional<std::vector<ChatMessage>> made =
      without_late_instructions(conversation(roles));
  if (!made) return "as it is";
  std::string shown;
  for (const ChatMessage& message : *made) {
    shown += (shown.empty() ? "" : " ") + message.role.substr(0, 1);
    for (const char c : message.content) shown += c == '\n' ? '|' : c;
  }
  return shown;
}

TEST(LateInstructions, BecomePartOfTheUsersMessageBesideThem) {
  EXPECT_EQ(moved(""), "as it is");
  EXPECT_EQ(moved("suau"), "as it is");
  EXPECT_EQ(moved("uau"), "as it is");
  EXPECT_EQ(moved("ssu"), "s0||1 u2");
  EXPECT_EQ(moved("us"), "u0||[system] 1");
  EXPECT_EQ(moved("usu"), "u0||[system] 1||2");
  EXPECT_EQ(moved("ssuasu"), "s0||1 u2 a3 u[system] 4||5");
  EXPECT_EQ(moved("suass"), "s0 u1 a2 u[system] 3||[system] 4");
  EXPECT_EQ(moved("uuasa"), "u0 u1 a2 u[system] 3 a4") << "what was apart stays so";
}

// Every conversation of five messages keeps all that was said, in its order.
TEST(LateInstructions, LoseNothingAndLeaveOneSystemAtTheBeginning) {
  for (int world = 0; world < 3 * 3 * 3 * 3 * 3; ++world) {
    std::string roles;
    for (int i = 0, rest = world; i < 5; ++i, rest /= 3) roles += "sua"[rest % 3];
    const std::optional<std::vector<ChatMessage>> made =
        without_late_instructions(conversation(roles));
    if (!made) continue;
    std::string said;
    for (const ChatMessage& message : *made) said += message.content;
    std::erase_if(said, [](char c) { return c < '0' || c > '9'; });
    EXPECT_EQ(said, "01234") << roles;
    for (std::size_t i = 1; i < made->size(); ++i) EXPECT_NE((*made)[i].role, "system") << roles;
  }
}

}  // namespace
}  // namespace outrider::llama
