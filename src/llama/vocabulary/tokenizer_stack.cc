#include "llama/vocabulary/tokenizer_stack.h"

#include <algorithm>

namespace outrider::llama {
namespace {

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

}  // namespace

std::size_t longest_piece(std::string_view text) {
  std::size_t words = 0;
  std::size_t others = 0;
  std::size_t most_words = 0;
  std::size_t most_others = 0;
  for (const char c : text) {
    words = !is_ascii(c) || is_word(c) ? words + 1 : 0;
    others = !is_ascii(c) || !is_word(c) ? others + 1 : 0;
    most_words = std::max(most_words, words);
    most_others = std::max(most_others, others);
  }
  return most_words + most_others;
}

}  // namespace outrider::llama
