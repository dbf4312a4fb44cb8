// Which tokens begin with which: for questions whose answer for a text settles it for all longer
// ones ("may the text go on so?": if not with "a", then not with "ab").
//
// Each token hangs below the longest other token that its text begins with. Only tokens whose texts
// are valid UTF-8 have others below them: the answer for a part of a character does not settle it
// (llama.cpp rejects the first byte of "ü" where a class excludes "é", which shares it).
//
// Example. "a", "an", "and", "ant", "b": roots a and b; below a: an; below an: and, ant.
//
// Cost. 49,152 tokens: 20 ms to build, 0.8 MB. Built once for a vocabulary, when first needed.
//
// Tested by token_prefixes_test.cc, and by grammar_mask_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "model/vocabulary.h"

namespace outrider::llama {

class TokenPrefixes {
 public:
  explicit TokenPrefixes(const Vocabulary& vocabulary);

  // Tokens below no other: among them all without text, and those that end a text.
  std::span<const Token> roots() const { return roots_; }

  // The tokens directly below `token`. REQUIRES: a valid id.
  std::span<const Token> below(Token token) const {
    const std::size_t i = static_cast<std::size_t>(token);
    return std::span<const Token>(below_).subspan(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }

 private:
  std::vector<Token> roots_;
  std::vector<std::uint32_t> offsets_;  // [n_vocab + 1] into below_
  std::vector<Token> below_;
};

}  // namespace outrider::llama
