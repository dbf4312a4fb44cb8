// NgramCache: which tokens followed the last one to four, and how often.
//
// Idea. The table behind lookup decoding (llama.cpp, examples/lookup, PR #4484 and #5479): each
// n-gram, 1 to 4 consecutive tokens, maps to the tokens that came behind it, with counts. The same
// table serves as a text's own (order 1 to 4), as that of earlier texts (1 to 4), and as that of a
// large corpus (order 2 only); draft/ngram/ngram_lookup.h says how a token is guessed from the
// three.
//
// Example. After "a b a b a" the table of orders 1 and 2 holds
//     a -> b:2    b -> a:2    a b -> a:2    b a -> b:1
//
// Layout. Entries lie in one array in the order of their first sight, found by a hash index of
// their places (open addressing, at most half full). An entry with one follower, which most are,
// holds it itself; several lie in a shared pool, sorted by token, in blocks of powers of two. So an
// entry costs 40 bytes and 8 to 16 of index, against some 150 in a map of maps.
//
// Of several followers with the same count the one that reached it last is the best: in a text that
// repeats itself the newer use is the better guess. (llama.cpp leaves ties to its hash table.)
//
// Cost. add(): one hash look-up, a binary search among the followers, and a move of those behind a
// new one. best(): one look-up.
//
// Tested by ngram_cache_test.cc against a map of maps: all short texts over small alphabets, and
// random operations with check_integrity() after each.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace outrider {

inline constexpr std::int32_t kMaxNgram = 4;     // longest n-gram of context and dynamic caches
inline constexpr std::int32_t kStaticNgram = 2;  // the one order of static caches

// Counts stop here, so that products of two, times 100, fit 64 bits.
inline constexpr std::uint32_t kMaxNgramCount = (1U << 28) - 1;

// 1 to kMaxNgram consecutive tokens, oldest first; kNoToken behind them.
struct Ngram {
  std::array<Token, kMaxNgram> tokens = {kNoToken, kNoToken, kNoToken, kNoToken};

  Ngram() = default;
  // REQUIRES: 1 <= given.size() <= kMaxNgram
  explicit Ngram(std::span<const Token> given);

  std::int32_t size() const;
  friend bool operator==(const Ngram&, const Ngram&) = default;
  friend auto operator<=>(const Ngram&, const Ngram&) = default;  // NOLINT(modernize-use-nullptr)
};

struct Follower {
  Token token = kNoToken;
  std::uint32_t count = 0;  // 1 to kMaxNgramCount
  friend bool operator==(const Follower&, const Follower&) = default;
};

// What is known of one n-gram. The spans are valid until the cache changes.
struct NgramPart {
  std::span<const Follower> followers;  // by rising token; not empty
  Follower best;                        // the one with the largest count, of equals the newest
  std::uint64_t total = 0;              // sum of the counts

  // How often `token` followed; 0: never.
  std::uint32_t count(Token token) const;
};

// Not synchronised: any number of readers, or one writer.
class NgramCache {
 public:
  NgramCache() = default;

  // `token` followed `ngram` another `times` times. The count saturates at kMaxNgramCount.
  // Returns the best follower before (kNoToken: none), which take_back() wants.
  // REQUIRES: token >= 0, the n-gram's tokens too; 1 <= times <= kMaxNgramCount
  Token add(const Ngram& ngram, Token token, std::uint32_t times = 1);

  // Undoes add(ngram, token, 1), which returned `best_before`: all is as before it.
  // REQUIRES: the adds since then were undone, in reverse order, and this one did not saturate.
  void take_back(const Ngram& ngram, Token token, Token best_before);

  // Counts the tokens of `text` from index `from` on as followers of the min_order to max_order
  // tokens in front of each, as far as the text has so many.
  // REQUIRES: 1 <= min_order <= max_order <= kMaxNgram; all tokens >= 0; from <= text.size()
  void count(std::span<const Token> text, std::size_t from, std::int32_t min_order,
             std::int32_t max_order);

  // Adds all that `other` holds; where counts come out equal, its best followers are the newer.
  // REQUIRES: `other` is not this cache
  void merge(const NgramCache& other);

  // Makes room for so many n-grams, so that adding them moves nothing.
  void reserve(std::size_t ngrams);

  // Empty again; keeps the memory.
  void clear();

  // False: `part` is unchanged.
  bool find(const Ngram& ngram, NgramPart& part) const;

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }    // n-grams
  std::size_t followers() const { return n_followers_; }  // all n-grams together
  std::array<std::size_t, kMaxNgram> sizes() const;       // [order - 1] n-grams

  // The n-gram at `index` in the order of first sight, and what is known of it.
  // REQUIRES: index < size()
  const Ngram& ngram(std::size_t index) const { return entries_[index].ngram; }
  NgramPart part(std::size_t index) const { return part_of(entries_[index]); }

  std::size_t memory_bytes() const;  // that it holds now, what is reserved included

  // Empty when all invariants hold, else what is broken.
  std::string check_integrity() const;

 private:
  struct Entry {
    Ngram ngram;
    std::uint64_t total = 0;
    Follower best;
    std::uint32_t n_followers = 0;  // 1: `best` is the only one, and there is no block
    std::uint32_t block = 0;        // index in pool_ of the first of capacity(n_followers)
  };

  static std::uint32_t size_class(std::uint32_t n);  // of a block for n >= 2: capacity 2 << class
  NgramPart part_of(const Entry& entry) const;
  std::size_t bucket_of(const Ngram& ngram) const;  // where it is, or the free one for it
  void resize_index(std::size_t buckets);
  std::uint32_t allocate(std::uint32_t size_class);
  void release(std::uint32_t block, std::uint32_t size_class);
  std::uint32_t insert_follower(Entry& entry, Token token);
  void remove_follower(Entry& entry, std::uint32_t at);

  std::vector<Entry> entries_;        // by first sight
  std::vector<std::uint32_t> index_;  // place in entries_ + 1; 0: free; size a power of 2
  std::vector<Follower> pool_;        // blocks of followers
  std::vector<std::vector<std::uint32_t>> free_;  // [size class] blocks not in use
  std::size_t n_followers_ = 0;
};

}  // namespace outrider
