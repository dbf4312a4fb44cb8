// NgramContext: the n-gram cache of one growing text, which can be cut back.
//
// Idea. Requests often begin like the one before (the next turn of a conversation), and counting a
// long text anew costs a microsecond a token. So what was counted is noted token by token, and a
// cut takes it back in reverse: the cache is then exactly what counting the shorter text gives,
// ties included, and nothing of the rest is left in it.
//
// Cost. 20 bytes a token for the notes, beside the cache (draft/ngram/ngram_cache.h); a cut costs
// what counting the tokens did.
//
// Tested by ngram_cache_test.cc: after random extensions and cuts the cache equals a fresh one.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "draft/ngram/ngram_cache.h"

namespace outrider {

class NgramContext {
 public:
  // `text` is the whole text: what was counted, and more. A text that visibly is another one (it is
  // shorter, or its token at the end of what was counted differs) is counted from its beginning.
  // May throw std::bad_alloc; then all is forgotten. REQUIRES: all tokens >= 0
  void extend(std::span<const Token> text);

  // Forgets all but the first `length` tokens. No effect when there are not more.
  void cut(std::size_t length);

  const NgramCache& cache() const { return cache_; }
  std::span<const Token> text() const { return text_; }
  std::size_t memory_bytes() const;

  // Empty when the cache is what counting the text anew gives, else what differs. Takes long.
  std::string check_integrity() const;

 private:
  void count_from(std::size_t begin, std::span<const Token> text);
  void forget();  // gives the memory back, too

  NgramCache cache_;  // orders 1 to kMaxNgram
  std::vector<Token> text_;
  std::vector<std::array<Token, kMaxNgram>> best_before_;  // [text] what add() returned, by order
};

}  // namespace outrider
