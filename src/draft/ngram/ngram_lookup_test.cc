#include "draft/ngram/ngram_lookup.h"

#include <gtest/gtest.h>

#include <random>

#include "testing/chi_square.h"
#include "testing/naive_ngrams.h"

namespace outrider {
namespace {

using testing::naive_guess;
using testing::NaiveNgrams;

// The same text as a cache and as the reference.
struct Both {
  Both(std::span<const Token> text, std::int32_t min_order, std::int32_t max_order) {
    cache.count(text, 0, min_order, max_order);
    naive.count(text, min_order, max_order);
  }
  NgramCache cache;
  NaiveNgrams naive;
};

Both context_of(const std::vector<Token>& text) { return Both(text, 1, kMaxNgram); }
Both corpus_of(const std::vector<Token>& text) { return Both(text, kStaticNgram, kStaticNgram); }

Token guess(const NgramCache* context, const NgramCache* dynamic, const NgramCache* corpus,
            const std::vector<Token>& text) {
  return guess_next({.context = context, .dynamic = dynamic, .corpus = corpus}, text).token;
}

TEST(NgramLookup, OfTwoEquallyFrequentFollowersTheNewerIsGuessed) {
  const Both context = context_of({8, 9, 1, 8, 9, 2});
  EXPECT_EQ(guess(&context.cache, nullptr, nullptr, {8, 9}), 2);
  EXPECT_EQ(guess(&context.cache, nullptr, nullptr, {1, 8, 9}), 2) << "the longer one knows more";
}

TEST(NgramLookup, AnOrderThatIsNotSureEnoughLeavesItToTheNext) {
  // One sighting is enough for order 3 and 4, two for order 1 and 2.
  const Both context = context_of({5, 6, 7, 1});
  EXPECT_EQ(guess(&context.cache, nullptr, nullptr, {5, 6, 7}), 1);
  EXPECT_EQ(guess(&context.cache, nullptr, nullptr, {6, 7}), kNoToken);
  EXPECT_EQ(guess(&context.cache, nullptr, nullptr, {7}), kNoToken);
  // The same knowledge in the dynamic cache is not sure enough: strict thresholds.
  EXPECT_EQ(guess(nullptr, &context.cache, nullptr, {5, 6, 7}), kNoToken);
}

TEST(NgramLookup, TheContextIsAskedFirstThenTheDynamicThenTheStaticCache) {
  const Both context = context_of({1, 2, 3, 10});
  const Both dynamic = context_of({1, 2, 3, 20, 1, 2, 3, 20, 4, 5, 6, 20, 4, 5, 6, 20});
  const Both corpus = corpus_of({2, 3, 30, 2, 3, 30, 5, 6, 30, 5, 6, 30, 7, 8, 30, 7, 8, 30});
  const NgramTiers tiers = {
      .context = &context.cache, .dynamic = &dynamic.cache, .corpus = &corpus.cache};
  const std::vector<std::pair<std::vector<Token>, NgramTier>> cases = {
      {{1, 2, 3}, NgramTier::kContext},
      {{4, 5, 6}, NgramTier::kDynamic},
      {{9, 7, 8}, NgramTier::kStatic},
      {{9, 9, 9}, NgramTier::kNone}};
  for (const auto& [text, tier] : cases) {
    const NgramGuess found = guess_next(tiers, text);
    EXPECT_EQ(found.tier, tier);
    EXPECT_EQ(found.token == kNoToken, tier == NgramTier::kNone);
    EXPECT_LT(found.chance, 1.0f) << "never certain";
  }
}

TEST(NgramLookup, WhatTheCorpusKnowsDecidesBetweenTheContextsFollowers) {
  const Both context = context_of({8, 9, 1, 8, 9, 2});
  const Both corpus = corpus_of({8, 9, 1});
  EXPECT_EQ(guess(&context.cache, nullptr, &corpus.cache, {8, 9}), 1);
  // But a follower that is rare in the text is not sure enough however common it is elsewhere; the
  // corpus itself then guesses, when it saw the two tokens often enough.
  const Both rare = context_of({8, 9, 1, 8, 9, 2, 8, 9, 2, 8, 9, 2});
  EXPECT_EQ(guess(&rare.cache, nullptr, &corpus.cache, {8, 9}), kNoToken);
  const Both larger = corpus_of({8, 9, 1, 8, 9, 1});
  EXPECT_EQ(guess(&rare.cache, nullptr, &larger.cache, {8, 9}), 1);
}

TEST(NgramLookup, CountsAtTheirLimitDoNotOverflow) {
  NgramCache context;
  NgramCache corpus;
  const Ngram one(std::vector<Token>{2});
  const Ngram two(std::vector<Token>{1, 2});
  for (const Token token : {5, 6}) {
    (void)context.add(two, token, kMaxNgramCount);
    (void)corpus.add(two, token, kMaxNgramCount - static_cast<std::uint32_t>(token));
  }
  EXPECT_EQ(guess(&context, nullptr, &corpus, {1, 2}), 5);
}

TEST(NgramLookup, EqualsTheRulesWrittenOutSlowlyOnRandomTexts) {
  std::mt19937_64 random(testing::test_seed(6103));
  std::int64_t by_tier[4] = {};
  for (int round = 0; round < 400; ++round) {
    const Token n_tokens = 2 + static_cast<Token>(random() % 12);
    const auto text = [&](std::size_t longest) {
      std::vector<Token> tokens(random() % longest);
      for (Token& token : tokens) {
        token = static_cast<Token>(std::min(random() % n_tokens, random() % n_tokens));
      }
      return tokens;
    };
    const Both context = context_of(text(40));
    const Both dynamic = context_of(text(200));
    const Both corpus = corpus_of(text(400));
    for (int i = 0; i < 40; ++i) {
      const std::vector<Token> behind = text(8);
      const bool with_context = random() % 4 != 0;
      const bool with_dynamic = random() % 4 != 0;
      const bool with_corpus = random() % 2 != 0;
      const NgramGuess found = guess_next({.context = with_context ? &context.cache : nullptr,
                                           .dynamic = with_dynamic ? &dynamic.cache : nullptr,
                                           .corpus = with_corpus ? &corpus.cache : nullptr},
                                          behind);
      ASSERT_EQ(found.token, naive_guess(with_context ? &context.naive : nullptr,
                                         with_dynamic ? &dynamic.naive : nullptr,
                                         with_corpus ? &corpus.naive : nullptr, behind));
      ++by_tier[static_cast<int>(found.tier)];
    }
  }
  for (const std::int64_t n : by_tier) EXPECT_GT(n, 100) << "the texts must reach every tier";
}

}  // namespace
}  // namespace outrider
