#include "llama/vocabulary/tokenizer_stack.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace outrider::llama {
namespace {

struct Range {
  std::uint32_t first, last;
};

bool holds(std::uint32_t c, const Range& range) { return c >= range.first && c <= range.last; }

template <std::size_t kN>
bool holds(std::uint32_t c, const std::array<Range, kN>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](const Range& range) { return holds(c, range); });
}

// Letters and digits of the most usual scripts.
constexpr std::array<Range, 14> kWords{{{'0', '9'},
                                        {'A', 'Z'},
                                        {'a', 'z'},
                                        {0xC0, 0xD6},
                                        {0xD8, 0xF6},
                                        {0xF8, 0x24F},
                                        {0x3A3, 0x3F5},    // Greek
                                        {0x400, 0x481},    // Cyrillic
                                        {0x5D0, 0x5EA},    // Hebrew
                                        {0x621, 0x64A},    // Arabic
                                        {0x3041, 0x3096},  // Hiragana
                                        {0x30A1, 0x30FA},  // Katakana
                                        {0x4E00, 0x9FFF},  // Chinese
                                        {0xAC00, 0xD7A3}}};
bool is_letter(std::uint32_t c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

// The character that begins at `at`, and its bytes, of a valid text.
std::uint32_t character_at(std::string_view text, std::size_t at, std::size_t* n) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const std::uint32_t lead = byte(0);
  *n = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (*n == 1 || at + *n > text.size()) return lead;
  std::uint32_t c = lead & (0xFFU >> (*n + 1));
  for (std::size_t i = 1; i < *n; ++i) c = c << 6U | (byte(i) & 0x3FU);
  return c;
}

}  // namespace

std::size_t longest_piece(std::string_view text) {
  std::size_t unbroken = 0;  // by a space
  std::size_t others = 0;    // spaces among them; what is not known may be one
  std::size_t phrase = 0;    // words with spaces between them
  std::size_t most = 0;
  std::size_t n = 1;
  for (std::size_t at = 0; at < text.size(); at += n) {
    const std::uint32_t c = character_at(text, at, &n);
    unbroken = c == ' ' || (c >= '\t' && c <= '\r') ? 0 : unbroken + n;
    others = holds(c, kWords) ? 0 : others + n;
    phrase = c == ' ' || c >= 0x80 || is_letter(c) ? phrase + n : 0;
    most = std::max({most, unbroken + 1, others, phrase + 1});
  }
  return most;
}

}  // namespace outrider::llama
