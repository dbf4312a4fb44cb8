// NaiveNgrams: n-gram caches and lookup decoding's rules, written out slowly: maps of maps, every
// rule as one reads it. What draft/ngram/ngram_cache.h and draft/ngram/ngram_lookup.h must equal.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "draft/ngram/ngram_lookup.h"

namespace outrider::testing {

class NaiveNgrams {
 public:
  struct Counted {
    std::uint64_t count = 0;
    std::uint64_t reached = 0;  // when it was last counted; larger is newer
  };
  using Followers = std::map<Token, Counted>;

  void add(const std::vector<Token>& ngram, Token token, std::uint32_t times);
  // All n-grams of these orders in `text`.
  void count(std::span<const Token> text, std::int32_t min_order, std::int32_t max_order);
  void merge(const NaiveNgrams& other);

  const std::map<std::vector<Token>, Followers>& ngrams() const { return ngrams_; }
  const Followers* find(const std::vector<Token>& ngram) const;

  // "" when `cache` holds the same n-grams, counts and best followers.
  std::string difference(const NgramCache& cache) const;

 private:
  std::map<std::vector<Token>, Followers> ngrams_;
  std::uint64_t now_ = 0;
};

// The newest of the followers with the largest count. REQUIRES: not empty
Token naive_best(const NaiveNgrams::Followers& followers);

// The token that lookup decoding's rules give, or kNoToken. Any tier may be null.
Token naive_guess(const NaiveNgrams* context, const NaiveNgrams* dynamic, const NaiveNgrams* corpus,
                  std::span<const Token> text);

}  // namespace outrider::testing
