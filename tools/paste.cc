#include "tools/paste.h"

#include <cstdlib>

namespace outrider::tools {

bool takes_escapes() {
  const char* name = std::getenv("TERM");
  return name != nullptr && *name != '\0' && std::string_view(name) != "dumb";
}

// Terminals send '\r' for newlines; "\r\n" is one.
void PasteDecoder::add_pasted(char byte, std::string& keys) {
  const bool second_half = byte == '\n' && after_return_;
  after_return_ = byte == '\r';
  if (second_half || byte == '\0') return;
  if (byte == '\t') {
    keys += tab_;
    return;
  }
  if (byte == '\r') byte = '\n';
  const unsigned char value = static_cast<unsigned char>(byte);
  if (value < 0x20 || value == 0x7F) keys += quote_;
  keys += byte;
}

void PasteDecoder::feed(std::string_view bytes, std::string& keys) {
  for (const char byte : bytes) {
    held_ += byte;
    // All but the last of `held_` began the mark; where it goes on otherwise, it was none.
    for (;;) {
      const std::string_view mark = pasting_ ? kPasteEnds : kPasteBegins;
      if (mark.starts_with(held_)) break;
      const char first = held_.front();
      held_.erase(0, 1);
      pasting_ ? add_pasted(first, keys) : keys.push_back(first);
    }
    if (held_ == (pasting_ ? kPasteEnds : kPasteBegins)) {
      pasting_ = !pasting_;
      after_return_ = false;
      held_.clear();
    }
  }
}

}  // namespace outrider::tools
