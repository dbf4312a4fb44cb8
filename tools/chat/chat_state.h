// ChatState: a conversation with a model, and what can be done with it. One thread.
//
// Answers go to stdout. What is said about them (notices, tables) goes to stderr, so that a script
// gets answers only.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "tools/answer.h"
#include "tools/chat/chat_stats.h"
#include "tools/chat/conversation.h"

namespace outrider::tools {

// What it works on; all of it must outlive it.
struct ChatParts {
  LocalRuntime& local;
  Terminal& terminal;
  const ModelArguments& model;
  RequestArguments& request;  // /set changes it
  const AnswerArguments& answer;
};

class ChatState {
 public:
  explicit ChatState(const ChatParts& parts);

  // Asks and prints the answer; both join the conversation. An answer that was cut short does, too;
  // where nothing was said, the conversation is as before. Errors: what kept it from being
  // answered; then also, and with --json the error is a line on stdout.
  Status ask(const std::string& text);

  // With --json, the line of a message that is not answered: one whose error is `status`.
  void put_error(const Status& status);

  // The commands (chat_commands.cc); an `argument` is what was typed behind the name.
  Status show_stats() const;
  Status set(const std::string& argument);
  Status set_system(const std::string& argument);
  // Replaces an older conversation, and no file of another kind.
  Status save(const std::string& path) const;
  Status load(const std::string& path);
  Status undo();
  Status retry();
  Status clear();
  // What the colours of answers mean; where they are off, how they are switched on.
  std::string color_help() const;
  void end() { ended_ = true; }

  // No more questions: /exit, or nobody reads the answers any more.
  bool ended() const { return ended_; }

 private:
  // Answers the conversation's last question. `before`: the conversation to go back to.
  Status answer(Conversation before);
  void tell_about(const CompletionResult& result, const ChatMessage& said) const;
  void tell_of_context(const CompletionResult& result) const;

  ChatParts parts_;
  TextOutput output_;
  Conversation conversation_;
  ChatStats stats_;
  std::shared_ptr<const CompletionResult> last_;  // null: no answer yet
  std::int32_t last_width_ = 0;                   // that it asked for
  bool ended_ = false;
};

}  // namespace outrider::tools
