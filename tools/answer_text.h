// AnswerText: an answer on its way to stdout, what the model thinks before it told apart from what
// it says.
//
// Idea. The conversation's reader takes the text so far apart; what is new of each part is written.
// The colours belong to tokens, the parts to texts without the template's marks: so each byte of an
// answer gets the colour of the next said byte that is the same.
// Tested by answer_text_test.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/chat.h"
#include "serve/completion_result.h"
#include "tools/text_output.h"

namespace outrider::tools {

// What an answer is made of; without a reader all of it is content. One that was cut short is read
// as far as it goes. Calls of tools, which nobody here would make, are content as they were said.
ChatReply read_reply(const CompletionResult& result);

enum class Thoughts {
  kDimmed,
  kMarked,  // where nothing can be dimmed: behind a line that says so
  kHidden,  // for a reader that wants answers alone
};

class AnswerText {
 public:
  // `reader`: null: all is content. `output` must outlive it.
  AnswerText(TextOutput& output, std::shared_ptr<const ChatReader> reader, Thoughts thoughts)
      : output_(output), reader_(std::move(reader)), thoughts_(thoughts) {}

  // More tokens, in order.
  void add(const std::vector<SaidToken>& tokens);
  // The end, with what was held back until it was there.
  void finish(const CompletionResult& result);

 private:
  void show(const ChatReply& reply);
  void show_thought(const std::string& more);
  void show_content(const std::string& more);
  // Who said the next byte of the text that is `byte`.
  std::string_view said_by(char byte);

  TextOutput& output_;
  std::shared_ptr<const ChatReader> reader_;
  Thoughts thoughts_;
  std::string text_;                  // all that was said
  std::vector<std::string_view> by_;  // of each of its bytes
  std::size_t at_ = 0;                // of it, what was shown or passed over
  std::size_t thought_ = 0;           // bytes shown
  std::size_t content_ = 0;           // likewise
  char last_thought_ = '\n';
};

}  // namespace outrider::tools
