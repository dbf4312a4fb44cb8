// DRY's sequence breakers: the tokens that end a repetition.
//
// Idea. A breaker is a text, and tokens may begin and end in the middle of it. A token whose text
// has all of it is one alone. A token whose text ends with the breaker's beginning is one where the
// tokens of the rest, its tail, follow. Both are looked for in all of the vocabulary, as llama.cpp
// does (get_overlapping_token_sequences in its src/llama-sampler.cpp); what comes out is the same.
// llama.cpp does so for every sampler, tokenises a tail anew for each token, and copies all of it
// with the sampler, node by node: 64 breakers of one byte held 56 MiB of a vocabulary of 262,144,
// and a copy took 140 ms. So a vocabulary keeps what was made of a few lists, and all samplers and
// their copies share it.
//
// Example. Of the breaker "ab": "xaby" alone; "xa" where the token "b" follows.
//
// Cost. A look at each token's text for each breaker, and a tokenisation for each tail. 4 bytes for
// each token of the vocabulary and for each tail of one, 2 MiB at 262,144 tokens of which each has
// one.
//
// Tested by dry_breakers_test.cc, and by row_edits_test.cc against llama.cpp's sampler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

struct llama_vocab;

namespace outrider::llama {

// Immutable; any thread.
class DryBreakers {
 public:
  // Of each of `texts` the first 40 bytes count, of a tail the first 20 tokens, as in llama.cpp.
  // `vocab` is only looked at here. Throws std::bad_alloc.
  DryBreakers(const llama_vocab* vocab, std::span<const std::string> texts);

  // True when `token` has all of a breaker, so that it ends a repetition whatever follows.
  bool ends_alone(Token token) const;

  // The tokens of `text` behind its last breaker; all, where it has none. The last is the one that
  // begins last; of those that begin there the longest.
  std::size_t n_behind_last(std::span<const Token> text) const;

 private:
  // The tails of `token`, as indices of tails_, in rising order.
  std::span<const std::uint32_t> of(Token token) const;

  std::vector<std::vector<Token>> tails_;  // the first one is empty
  std::vector<std::uint32_t> offsets_;     // [n_vocab + 1] into heads_
  std::vector<std::uint32_t> heads_;
};

// Those of the lists that were asked for last. Any thread.
class DryBreakersCache {
 public:
  static constexpr std::size_t kMost = 4;  // lists

  // The same object for the same `texts` while they are among the last; made by the first who asks,
  // for whom others with the same list wait. Throws std::bad_alloc.
  std::shared_ptr<const DryBreakers> get(const llama_vocab* vocab,
                                         const std::vector<std::string>& texts);

 private:
  struct Entry {
    std::vector<std::string> texts;
    std::mutex mutex;  // while it is made; not held together with the cache's
    std::shared_ptr<const DryBreakers> breakers;  // null: not made yet
  };

  std::shared_ptr<Entry> entry_of(const std::vector<std::string>& texts);

  std::mutex mutex_;
  std::vector<std::shared_ptr<Entry>> entries_;  // the one asked for last at the end
};

}  // namespace outrider::llama
