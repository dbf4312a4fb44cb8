// Conversation: the messages of a chat, and their file.
//
// The file is one line of JSON, {"messages":[{"role","content"},...]} as OpenAI's API has them. So
// it is a prompt file (input/prompt_file.h) as well: `compare` and `bench` take it, and ask its
// last question. Tested by conversation_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/watcher.h"
#include "model/chat.h"

namespace outrider::tools {

// A value: copy it to go back to it. One thread.
class Conversation {
 public:
  const std::vector<ChatMessage>& messages() const { return messages_; }

  // What stands in front of all messages; empty: nothing.
  std::string system() const;
  void set_system(const std::string& text);

  void add_user(std::string text);
  // REQUIRES: the last message is a user's (or a tool's)
  void add_answer(ChatMessage answer);

  // The last question; null: there is none.
  const std::string* last_question() const;

  // Takes away the last question, with its answer. False when there is none.
  bool undo();
  // Takes away what came behind the last question, so that it can be answered anew. False when
  // there is none.
  bool drop_answer();
  // Forgets all but the system's message.
  void clear();

  // Replaces the file atomically. Errors: those of write_whole_file().
  Status save(const std::string& path) const;
  // Errors name the file, and the message and field that is wrong: kNotFound, kInvalidArgument
  // (also "-" and what is no regular file, of which nothing is opened, and one of more than
  // kMostFileBytes), kInternal; kCancelled when `watcher` ends it.
  static Result<Conversation> load(const std::string& path, const Watcher& watcher = {});
  static constexpr std::size_t kMostFileBytes = 8 * kMaxChatBytes;  // JSON writes a byte as 6

 private:
  bool has_system() const { return !messages_.empty() && messages_.front().role == "system"; }
  // The place of the last question, or that behind the last message.
  std::size_t question() const;

  std::vector<ChatMessage> messages_;
};

}  // namespace outrider::tools
