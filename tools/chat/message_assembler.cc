#include "tools/chat/message_assembler.h"

#include <string_view>

#include "tools/paste.h"

namespace outrider::tools {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Of several lines, which are meant as they are, the first keeps its indentation: only empty lines
// go in front of it.
std::string_view without_frame(std::string_view text) {
  const std::string_view inner = trimmed(text);
  if (inner.empty() || text.find('\n') == std::string_view::npos) return inner;
  const auto begin = static_cast<std::size_t>(inner.data() - text.data());
  const std::size_t first = text.rfind('\n', begin) + 1;  // 0: there is none before it
  return text.substr(first, begin + inner.size() - first);
}

}  // namespace

std::optional<ChatInput> MessageAssembler::take(bool command) {
  ChatInput input{.text = std::string(without_frame(text_)), .command = command};
  reset();
  return input;
}

bool MessageAssembler::strip_paste_marks(std::string& line) {
  bool any = pasting_;
  for (;;) {
    const std::string_view mark = pasting_ ? kPasteEnds : kPasteBegins;
    const std::size_t at = line.find(mark);
    if (at == std::string::npos) return any;
    line.erase(at, mark.size());
    pasting_ = !pasting_;
    any = true;
  }
}

std::optional<ChatInput> MessageAssembler::add(std::string line) {
  const bool first = !begun_;
  if (!line.empty() && line.back() == '\r') line.pop_back();
  bool literal = strip_paste_marks(line);
  literal = literal || line.find('\n') != std::string::npos;  // a line editor's paste
  begun_ = true;
  if (!literal && !quoted_ && first && trimmed(line).starts_with(kQuotes)) {
    quoted_ = true;
    line.erase(0, line.find(kQuotes) + kQuotes.size());
  }
  if (quoted_ && !pasting_ && trimmed(line).ends_with(kQuotes)) {
    line.erase(line.rfind(kQuotes));
    quoted_ = false;
    text_ += line;
    return take(/*command=*/false);
  }
  const bool goes_on = !literal && !quoted_ && !line.empty() && line.back() == '\\';
  if (goes_on) line.pop_back();
  text_ += line;
  if (goes_on || quoted_ || pasting_) {
    text_ += '\n';
    return std::nullopt;
  }
  return take(first && line.starts_with('/') && line.find('\n') == std::string::npos);
}

std::optional<ChatInput> MessageAssembler::finish() {
  return begun_ ? take(/*command=*/false) : std::nullopt;
}

}  // namespace outrider::tools
