#include "draft/ngram/ngram_limit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "draft/ngram/ngram_file.h"
#include "testing/chi_square.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

const TokenizerId kLimitTokenizer = {.hash = 7, .n_vocab = 300};

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
    const NgramCache kept = limited_ngrams(cache, 32 * ngrams);
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

TEST(NgramLimit, OfTextsThatWereAddedOneByOneTheOldestGoesFirst) {
  const testing::TempDir dir;
  const std::string path = dir.file("x.ngram");
  const auto text_of = [](Token first) {
    std::vector<Token> text(10);
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = first + static_cast<Token>(i);
    return text;
  };
  const auto holds = [&text_of](const NgramCache& cache, Token first) {
    const std::vector<Token> text = text_of(first);
    NgramPart part;
    return cache.find(Ngram(std::span(text).subspan(5, 4)), part);
  };
  NgramCache two;
  for (const Token first : {90, 10}) two.count(text_of(first), 0, 1, kMaxNgram);
  const std::uint64_t most = ngram_file_bytes(two);
  for (const Token first : {90, 10, 50, 30}) {
    ASSERT_TRUE(add_to_ngrams(text_of(first), kLimitTokenizer, path, most).ok());
    const Result<NgramCache> cache = load_ngrams(path, kLimitTokenizer);
    ASSERT_TRUE(cache.ok()) << cache.status().message();
    EXPECT_EQ(cache->check_integrity(), "");
    EXPECT_TRUE(holds(*cache, first)) << first;
    EXPECT_EQ(holds(*cache, 90), first == 90 || first == 10) << first;
    EXPECT_EQ(holds(*cache, 10), first == 10 || first == 50) << first;
  }
}

// A file of a version before ages: its order is that of its n-grams, until a text is added.
TEST(NgramLimit, AFileWithoutAgesIsAddedToAndWhatIsAddedIsNewer) {
  const testing::TempDir dir;
  const std::string path = dir.file("x.ngram");
  const std::vector<Token> old_text = {200, 201, 202, 203, 204, 205};
  const std::vector<Token> new_text = {100, 101, 102, 103, 104, 105};
  NgramCache old_cache;
  old_cache.count(old_text, 0, 1, kMaxNgram);
  ASSERT_TRUE(save_ngrams(old_cache, kLimitTokenizer, path).ok());
  const std::uint64_t most = ngram_file_bytes(old_cache);
  ASSERT_TRUE(add_to_ngrams(new_text, kLimitTokenizer, path, most).ok());
  const Result<NgramCache> cache = load_ngrams(path, kLimitTokenizer);
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  NgramPart part;
  EXPECT_TRUE(cache->find(Ngram(std::span(new_text).first(1)), part));
  EXPECT_FALSE(cache->find(Ngram(std::span(old_text).first(1)), part));
}

}  // namespace
}  // namespace outrider
