#include "tools/answer_text.h"

namespace outrider::tools {
namespace {

constexpr const char* kThinks = "(thinking)\n";
constexpr const char* kAnswers = "(answer)\n";
constexpr std::string_view kNobody = "target";  // as SaidToken::by has it

// What `whole` has behind the part that was shown. A reader's texts only grow.
std::string behind(const std::string& whole, std::size_t shown) {
  return whole.size() > shown ? whole.substr(shown) : std::string();
}

}  // namespace

ChatReply read_reply(const CompletionResult& result) {
  const Completion& completion = result.completion;
  ChatReply reply;
  if (result.reader != nullptr) {
    const bool complete = completion.finish == FinishReason::kStop;
    reply = result.reader->read(completion.text, complete);
  }
  if (result.reader == nullptr || !reply.tool_calls.empty()) {
    reply = {.content = completion.text, .reasoning = "", .tool_calls = {}};
  }
  return reply;
}

std::string_view AnswerText::said_by(char byte) {
  const std::size_t found = text_.find(byte, at_);
  if (found == std::string::npos) return kNobody;
  at_ = found + 1;
  return by_[found];
}

void AnswerText::show_thought(const std::string& more) {
  for (const char byte : more) said_by(byte);
  if (thought_ == 0 && thoughts_ == Thoughts::kMarked) output_.write_thought(kThinks);
  if (thoughts_ != Thoughts::kHidden) output_.write_thought(more);
  thought_ += more.size();
  last_thought_ = more.back();
}

void AnswerText::show_content(const std::string& more) {
  if (content_ == 0 && thought_ > 0 && thoughts_ != Thoughts::kHidden) {
    output_.write_thought(last_thought_ == '\n' ? "\n" : "\n\n");
    if (thoughts_ == Thoughts::kMarked) output_.write_thought(kAnswers);
  }
  content_ += more.size();
  std::vector<SaidToken> pieces;
  for (const char byte : more) {
    const std::string_view by = said_by(byte);
    if (pieces.empty() || pieces.back().by != by) pieces.push_back({.text = "", .by = by});
    pieces.back().text += byte;
  }
  output_.write(pieces);
}

void AnswerText::show(const ChatReply& reply) {
  const std::string thought = behind(reply.reasoning, thought_);
  const std::string content = behind(reply.content, content_);
  if (!thought.empty()) show_thought(thought);
  if (!content.empty()) show_content(content);
}

void AnswerText::add(const std::vector<SaidToken>& tokens) {
  if (reader_ == nullptr) return output_.write(tokens);
  const std::size_t before = text_.size();
  for (const SaidToken& token : tokens) {
    text_ += token.text;
    by_.insert(by_.end(), token.text.size(), token.by);
  }
  if (text_.size() > before) show(reader_->read(text_, /*complete=*/false));
}

void AnswerText::finish(const CompletionResult& result) {
  if (reader_ != nullptr) show(read_reply(result));
  output_.finish();
}

}  // namespace outrider::tools
