#include "base/utf8.h"

#include <cstdint>

namespace outrider {
namespace {

enum class Scan { kComplete, kCutOff, kInvalid };

struct Character {
  Scan scan;
  std::size_t length;  // bytes read; for kInvalid at least 1
};

// Reads the character at the front of a text that is not empty.
Character scan_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return {Scan::kComplete, 1};
  std::size_t length = 0;
  std::uint8_t low = 0x80;   // bounds of the second byte: they rule out overlong forms, surrogates
  std::uint8_t high = 0xBF;  // and what lies above U+10FFFF
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return {Scan::kInvalid, 1};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Scan::kCutOff, i};
    const bool good = i == 1 ? byte(i) >= low && byte(i) <= high : (byte(i) & 0xC0) == 0x80;
    if (!good) return {Scan::kInvalid, i};
  }
  return {Scan::kComplete, length};
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Character c = scan_character(text.substr(at));
    if (c.scan != Scan::kComplete) return at;
    at += c.length;
  }
  return std::nullopt;
}

std::size_t complete_utf8_prefix(std::string_view text) {
  // Only the last three bytes can belong to a character that is cut off.
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const std::size_t at = text.size() - back;
    if (scan_character(text.substr(at)).scan == Scan::kCutOff) return at;
  }
  return text.size();
}

}  // namespace outrider
