#include "draft/ngram/ngram_limit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "testing/chi_square.h"

namespace outrider {
namespace {

Ngram one(Token token) { return Ngram(std::vector<Token>{token}); }

TEST(NgramLimit, WhatFitsIsKeptAsItIs) {
  NgramCache cache;
  cache.add(one(1), 2);
  cache.add(one(1), 3);
  const NgramCache kept = limited_ngrams(cache, ngram_file_bytes(cache));
  EXPECT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept.followers(), 2U);
}

TEST(NgramLimit, TheLeastUsedGoFirstAndOfEqualsTheOldest) {
  NgramCache cache;
  cache.add(one(1), 9, 5);
  cache.add(one(2), 9);
  cache.add(one(3), 9, 2);
  cache.add(one(4), 9);
  const auto kept_of = [&cache](std::uint64_t ngrams) {
    const NgramCache kept = limited_ngrams(cache, 28 * ngrams);
    std::vector<Token> tokens;
    for (std::size_t i = 0; i < kept.size(); ++i) tokens.push_back(kept.ngram(i).tokens[0]);
    return tokens;
  };
  EXPECT_EQ(kept_of(4), (std::vector<Token>{1, 2, 3, 4}));
  EXPECT_EQ(kept_of(3), (std::vector<Token>{1, 3, 4}));
  EXPECT_EQ(kept_of(2), (std::vector<Token>{1, 3}));
  EXPECT_EQ(kept_of(1), (std::vector<Token>{1}));
  EXPECT_TRUE(kept_of(0).empty());
}

TEST(NgramLimit, RandomCachesKeepTheirLimitAndTheirCounts) {
  std::mt19937_64 random(testing::test_seed(21));
  for (int round = 0; round < 50; ++round) {
    std::vector<Token> text(1 + random() % 400);
    for (Token& token : text) token = static_cast<Token>(random() % 12);
    NgramCache cache;
    cache.count(text, 0, 1, kMaxNgram);
    const std::uint64_t most = random() % (ngram_file_bytes(cache) + 100);
    const NgramCache kept = limited_ngrams(cache, most);
    EXPECT_EQ(kept.check_integrity(), "");
    EXPECT_LE(ngram_file_bytes(kept), most);
    std::uint64_t least_kept = ~std::uint64_t{0};
    for (std::size_t i = 0; i < kept.size(); ++i) {
      NgramPart before;
      ASSERT_TRUE(cache.find(kept.ngram(i), before));
      const NgramPart part = kept.part(i);
      EXPECT_TRUE(std::equal(part.followers.begin(), part.followers.end(), before.followers.begin(),
                             before.followers.end()));
      EXPECT_EQ(part.best, before.best);
      least_kept = std::min(least_kept, part.total);
    }
    for (std::size_t i = 0; i < cache.size(); ++i) {  // nothing better was left out
      NgramPart part;
      if (!kept.empty() && !kept.find(cache.ngram(i), part)) {
        EXPECT_LE(cache.part(i).total, least_kept);
      }
    }
  }
}

}  // namespace
}  // namespace outrider
