// How deep llama.cpp's tokenizer recurses over a text.
//
// Byte-pair vocabularies split a text by a regular expression first. For about half of them
// (gpt-4o, tekken, deepseek-v3, ...) llama.cpp leaves that to std::regex, whose matcher recurses
// once for each character of a match: 320 bytes a character, so that 26,000 letters without a space
// are the end of a process with stacks of 8 MiB (docs/bugs.md).
#pragma once

#include <cstddef>
#include <string_view>

namespace outrider::llama {

// A bound of the longest match, in bytes of a valid text: what these expressions match in one piece
// is what lies between two spaces, with one before it, or a run of spaces and signs, or
// (exaone-moe) words with nothing but spaces between them.
std::size_t longest_piece(std::string_view text);

}  // namespace outrider::llama
