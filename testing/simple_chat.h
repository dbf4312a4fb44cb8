// A chat format for vocabularies of tests, simple enough to work out on paper, that can do all that
// templates can: tools, reasoning, stop texts, a token that only the reader sees.
//
//   prompt   tools: [{"name":...},...]\n   (with tools)
//            user: Hi\n                     one line a message; calls as call: {...}
//            assistant:
//   answer   content, and lines of calls: "(call NAME {ARGUMENTS})"; "(think ...)" at its beginning
//
// An unfinished "(call" is held back until it is decided.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/chat.h"

namespace outrider::testing {

Result<ChatPrompt> simple_chat_prompt(const std::vector<ChatMessage>& messages,
                                      const ChatOptions& options);

class SimpleChatReader : public ChatReader {
 public:
  explicit SimpleChatReader(ChatReply given = {}) : given_(std::move(given)) {}
  ChatReply read(std::string_view text, bool complete) const override;
  ChatReply given() const override { return given_; }

 private:
  const ChatReply given_;
};

}  // namespace outrider::testing
