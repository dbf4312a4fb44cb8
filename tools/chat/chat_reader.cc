#include "tools/chat/chat_reader.h"

#include <optional>
#include <utility>

namespace outrider::tools {
namespace {

constexpr const char* kPrompt = "> ";
constexpr const char* kGoesOn = ". ";  // the message goes on

}  // namespace

LineSource::Kind ChatReader::next_line(std::string& line) {
  signals_.on_signal([this] { lines_.interrupt(); });
  const LineSource::Kind kind = lines_.next(assembler_.pending() ? kGoesOn : kPrompt, line);
  signals_.on_signal({});
  return kind;
}

void ChatReader::drop_typed() {
  assembler_.reset();
  lines_.resume();
}

ChatReader::Kind ChatReader::next(ChatInput& input) {
  for (;;) {
    std::string line;
    std::optional<ChatInput> whole;
    switch (next_line(line)) {
      case LineSource::Kind::kLine:
        whole = assembler_.add(std::move(line));
        break;
      case LineSource::Kind::kTooLong:
        assembler_.reset();
        return Kind::kTooLong;
      case LineSource::Kind::kEnd:
        whole = assembler_.finish();
        if (!whole || whole->text.empty()) return Kind::kEnd;
        break;
      case LineSource::Kind::kInterrupted: {
        const bool nothing = !assembler_.pending() && !lines_.had_text();
        assembler_.reset();
        lines_.resume();
        signals_.lower();
        return nothing ? Kind::kInterrupted : Kind::kDropped;
      }
    }
    if (!whole || whole->text.empty()) continue;
    if (!whole->command || whole->text != "/exit") lines_.remember(whole->text);
    input = std::move(*whole);
    return Kind::kInput;
  }
}

}  // namespace outrider::tools
