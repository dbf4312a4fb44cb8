#include "base/one_line.h"

namespace outrider {
namespace {

constexpr char kBeginsHighControl = '\xC2';
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_control(char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; }

// Behind kBeginsHighControl, which no other character ends with.
bool ends_high_control(char before, char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return before == kBeginsHighControl && value >= 0x80 && value < 0xA0;
}

}  // namespace

std::string one_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::string line;
  line.reserve(text.size());
  char before = '\0';
  for (const char byte : text) {
    const bool high = ends_high_control(before, byte);
    if (high) line.pop_back();
    line += high || is_control(byte) ? ' ' : byte;
    before = byte;
  }
  return line;
}

std::string terminal_text(std::string_view text, char before) {
  std::string shown;
  shown.reserve(text.size());
  for (const char byte : text) {
    if (byte == '\r') continue;  // and what it stood between may be one character
    const bool high = ends_high_control(before, byte);
    before = byte;
    if (high && !shown.empty()) shown.pop_back();  // else the terminal has its first byte already
    if (high || (is_control(byte) && byte != '\n' && byte != '\t')) {
      shown += kReplacement;
    } else {
      shown += byte;
    }
  }
  return shown;
}

}  // namespace outrider
