// TranslatedText: a target's text in the tokens of a draft model, kept up to date as it grows.
//
// Idea. The draft should see the tokens that its own tokenizer makes of the text, not the target's
// cuts, which it never met in training:
//
//      target's tokens     " light" "house" " keep"      then   "er"
//      draft's tokens      " lighthouse" " keep"         then   " lighthouse" " keeper"
//
// New bytes can change the last tokens, but not those far back. So when the text grows, the bytes
// of the last kWindow tokens and of what is new are cut again. The cut begins in the middle of the
// text, where it may begin otherwise than the text's own; so its tokens are taken from the last
// place in the window's first half that follows some tokens which both cuts have in common, and
// what stands before stays. Without such a place a larger window is tried, up to the whole text.
//
// Control tokens separate: the text between two of them is cut by itself. A control token that the
// draft has not (VocabularyMap) is spelt out in ordinary tokens, "<|im_start|>"; the token that the
// target's tokenizer puts in front of a text is replaced by the draft's.
//
// Cost: one call of the tokenizer on some 150 bytes for each extend(); see
// docs/benchmarks-counts.md.
//
// Invariants, restated by check_integrity(): the draft's tokens, the front and control tokens left
// out, spell the text's bytes, except for a space that the tokenizer adds at a beginning and bytes
// that the draft has no token for.
//
// Tested by translated_text_test.cc: all texts over small alphabets, every split into steps, equal
// a fresh cut; and tests/real_vocabularies_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "draft/translated/vocabulary_map.h"

namespace outrider {

class TranslatedText {
 public:
  // The draft's tokens that are cut again when the text grows. A word of prose or code has up to
  // eight; half of the window must hold what new bytes can change.
  static constexpr std::size_t kWindow = 32;

  // `map` must outlive this. `window` >= 2.
  explicit TranslatedText(const VocabularyMap& map, std::size_t window = kWindow);

  // The target's text is its first `keep` tokens so far, followed by `more`. Tokens of `more` that
  // are there already cost nothing. On error the text is empty.
  // REQUIRES: keep <= size(); ids of the target's vocabulary.
  Status set(std::size_t keep, std::span<const Token> more);

  std::size_t size() const { return text_.size(); }  // in the target's tokens

  // The draft's tokens. Never empty: for a text without any, a token that begins texts stands in.
  std::span<const Token> tokens() const { return tokens_.empty() ? stand_in_ : tokens_; }

  // Empty when all invariants hold, else what is broken.
  std::string check_integrity() const;

 private:
  // What the draft's token at the same index stands for.
  struct Mark {
    std::size_t end;       // of its bytes in bytes_
    std::size_t n_target;  // tokens of the target up to a control token and with it; 0: text
  };

  void clear();
  void cut_back(std::size_t n_target);
  Status append(std::span<const Token> more);
  Status recut();
  bool splice(std::size_t from, std::size_t begin, std::span<const CutToken> cut);
  void replace(std::size_t from, std::size_t begin, std::span<const CutToken> cut);
  void push_control(Token token, std::size_t n_target);

  const VocabularyMap* map_;
  std::size_t window_;
  std::vector<Token> stand_in_;    // [1]
  std::vector<Token> text_;        // the target's
  std::vector<std::size_t> ends_;  // [text_] of each token's bytes in bytes_
  std::string bytes_;
  std::vector<Token> tokens_;          // the draft's
  std::vector<Mark> marks_;            // [tokens_]
  std::vector<std::size_t> controls_;  // indices in tokens_ of those that are not text, rising
};

}  // namespace outrider
