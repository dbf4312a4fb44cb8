#include "llama/grammar/gbnf_cursor.h"

#include <algorithm>

namespace outrider::llama {

bool GbnfCursor::is_digit(char c) { return c >= '0' && c <= '9'; }
bool GbnfCursor::is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

Status GbnfCursor::wrong(const std::string& what) const {
  const std::string_view before = text_.substr(0, at_);
  const std::ptrdiff_t line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t column =
      newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
  return invalid_argument("line " + std::to_string(line) + ", column " + std::to_string(column) +
                          ": " + what);
}

void GbnfCursor::skip_space(bool newlines) {
  while (!at_end()) {
    const char c = peek();
    if (c == '#') {
      while (!at_end() && peek() != '\r' && peek() != '\n') ++at_;
    } else if (c == ' ' || c == '\t' || (newlines && (c == '\r' || c == '\n'))) {
      ++at_;
    } else {
      return;
    }
  }
}

std::string GbnfCursor::read_name() {
  const std::size_t begin = at_;
  while (is_word(peek())) ++at_;
  return std::string(since(begin));
}

Status GbnfCursor::read_char(std::uint32_t& character) {
  if (at_end()) return wrong("unexpected end of the grammar inside a literal or class");
  if (peek() != '\\') {
    const std::uint32_t lead = static_cast<unsigned char>(peek());
    character = lead < 0x80 ? lead : lead & (lead < 0xE0 ? 0x1F : lead < 0xF0 ? 0x0F : 0x07);
    ++at_;
    for (; (static_cast<unsigned char>(peek()) & 0xC0) == 0x80; ++at_) {
      character = (character << 6) | (static_cast<unsigned char>(peek()) & 0x3F);
    }
    return Status();
  }
  const char c = peek(1);
  const std::size_t n_hex = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (n_hex == 0 &&
      (c == '\0' || std::string_view("trn\\\"[]-").find(c) == std::string_view::npos)) {
    return wrong("unknown escape; known are \\x \\u \\U \\t \\r \\n \\\\ \\\" \\[ \\] \\-");
  }
  character = static_cast<unsigned char>(c == 't' ? '\t' : c == 'r' ? '\r' : c == 'n' ? '\n' : c);
  if (n_hex > 0) character = 0;
  for (std::size_t i = 0; i < n_hex; ++i) {
    constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
    const char c_hex = peek(2 + i);
    const std::size_t digit = c_hex == '\0' ? kDigits.npos : kDigits.find(c_hex);
    if (digit == kDigits.npos) return wrong("expected " + std::to_string(n_hex) + " hex digits");
    character = character * 16 + static_cast<std::uint32_t>(digit < 16 ? digit : digit - 6);
  }
  at_ += 2 + n_hex;
  return Status();
}

Status GbnfCursor::read_number(std::uint64_t most, std::uint64_t& value) {
  if (!is_digit(peek())) return wrong("expected a number");
  value = 0;
  for (; is_digit(peek()); ++at_) {
    value = value * 10 + static_cast<std::uint64_t>(peek() - '0');
    if (value > most) return wrong("the number is above " + std::to_string(most));
  }
  return Status();
}

}  // namespace outrider::llama
