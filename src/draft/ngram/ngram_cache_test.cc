#include "draft/ngram/ngram_cache.h"

#include <gtest/gtest.h>

#include <random>

#include "draft/ngram/ngram_context.h"
#include "testing/chi_square.h"
#include "testing/naive_ngrams.h"

namespace outrider {
namespace {

using testing::NaiveNgrams;

// All texts of `length` tokens over 0 .. n_tokens-1.
template <typename Function>
void for_each_text(std::size_t length, Token n_tokens, const Function& f) {
  std::vector<Token> text(length, 0);
  for (;;) {
    f(text);
    std::size_t i = 0;
    while (i < length && ++text[i] == n_tokens) text[i++] = 0;
    if (i == length) return;
  }
}

std::vector<Token> tokens_of(const Ngram& ngram) {
  return {ngram.tokens.begin(), ngram.tokens.begin() + ngram.size()};
}

TEST(NgramCache, HoldsWhatTheMapOfMapsHoldsForEveryShortText) {
  for (const Token n_tokens : {2, 3}) {
    for (std::size_t length = 0; length <= (n_tokens == 2 ? 10 : 7); ++length) {
      for_each_text(length, n_tokens, [](const std::vector<Token>& text) {
        NgramCache cache;
        cache.count(text, 0, 1, kMaxNgram);
        NaiveNgrams naive;
        naive.count(text, 1, kMaxNgram);
        ASSERT_EQ(cache.check_integrity(), "");
        ASSERT_EQ(naive.difference(cache), "");
      });
    }
  }
}

TEST(NgramCache, CountingInPiecesIsCountingAtOnce) {
  for_each_text(8, 2, [](const std::vector<Token>& text) {
    NgramCache cache;
    for (std::size_t i = 0; i < text.size(); ++i) {
      cache.count(std::span(text).first(i + 1), i, 1, kMaxNgram);
    }
    NaiveNgrams naive;
    naive.count(text, 1, kMaxNgram);
    ASSERT_EQ(naive.difference(cache), "");
  });
}

TEST(NgramCache, EqualsTheMapOfMapsAfterEachOfManyRandomOperations) {
  std::mt19937_64 random(testing::test_seed(6101));
  for (int round = 0; round < 20; ++round) {
    NgramCache cache;
    NaiveNgrams naive;
    const Token n_tokens = 2 + static_cast<Token>(random() % 40);
    for (int i = 0; i < 400; ++i) {
      if (random() % 100 == 0) {
        NgramCache other;
        NaiveNgrams naive_other;
        std::vector<Token> text(random() % 60);
        for (Token& token : text) token = static_cast<Token>(random() % n_tokens);
        other.count(text, 0, 1, 3);
        naive_other.count(text, 1, 3);
        cache.merge(other);
        naive.merge(naive_other);
      } else {
        std::vector<Token> ngram(1 + random() % 2);
        for (Token& token : ngram) token = static_cast<Token>(random() % 3);
        const Token token = static_cast<Token>(random() % n_tokens);
        const std::uint32_t times =
            random() % 50 == 0 ? kMaxNgramCount - 1 : 1 + static_cast<std::uint32_t>(random() % 3);
        (void)cache.add(Ngram(ngram), token, times);
        naive.add(ngram, token, times);
      }
      ASSERT_EQ(cache.check_integrity(), "");
      ASSERT_EQ(naive.difference(cache), "");
    }
  }
}

TEST(NgramCache, CountsStopAtTheirLimitInsteadOfWrapping) {
  NgramCache cache;
  const Ngram ngram(std::vector<Token>{1});
  for (const Token token : {7, 7, 8, 8, 8}) (void)cache.add(ngram, token, kMaxNgramCount);
  NgramPart part;
  ASSERT_TRUE(cache.find(ngram, part));
  EXPECT_EQ(part.count(7), kMaxNgramCount);
  EXPECT_EQ(part.count(8), kMaxNgramCount);
  EXPECT_EQ(part.total, 2ULL * kMaxNgramCount);
  NgramCache other;
  (void)other.add(ngram, 7, kMaxNgramCount);
  cache.merge(other);
  ASSERT_TRUE(cache.find(ngram, part));
  EXPECT_EQ(part.count(7), kMaxNgramCount);
  EXPECT_EQ(part.best.token, 7) << "of equals the one that was merged last";
  EXPECT_EQ(cache.check_integrity(), "");
}

TEST(NgramCache, ClearedItIsAsNew) {
  NgramCache cache;
  const std::vector<Token> text = {1, 2, 3, 1, 2, 4, 1, 2, 5};
  cache.count(text, 0, 1, kMaxNgram);
  cache.clear();
  EXPECT_TRUE(cache.empty());
  EXPECT_EQ(cache.check_integrity(), "");
  NgramPart part;
  EXPECT_FALSE(cache.find(Ngram(std::span(text).first(1)), part));
  cache.count(text, 0, 1, kMaxNgram);
  NaiveNgrams naive;
  naive.count(text, 1, kMaxNgram);
  EXPECT_EQ(naive.difference(cache), "");
}

TEST(NgramCache, MemoryIsThatOfWhatItHolds) {
  NgramCache cache;
  EXPECT_EQ(cache.memory_bytes(), 0U);
  std::vector<Token> text(2000);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<Token>(i * 7919 % 1000);
  cache.count(text, 0, 1, kMaxNgram);
  EXPECT_GE(cache.memory_bytes(), cache.size() * 40);
  EXPECT_LE(cache.memory_bytes(), cache.size() * 120);
}

TEST(NgramContext, EveryCutOfEveryShortTextLeavesWhatCountingTheRestGives) {
  for_each_text(8, 2, [](const std::vector<Token>& text) {
    for (std::size_t length = 0; length <= text.size(); ++length) {
      NgramContext context;
      context.extend(text);
      context.cut(length);
      ASSERT_EQ(context.text().size(), length);
      ASSERT_EQ(context.check_integrity(), "");
      context.extend(text);
      ASSERT_EQ(context.check_integrity(), "");
    }
  });
}

TEST(NgramContext, RandomExtensionsAndCutsLeaveNothingBehind) {
  std::mt19937_64 random(testing::test_seed(6102));
  for (int round = 0; round < 30; ++round) {
    NgramContext context;
    std::vector<Token> text;
    const Token n_tokens = 2 + static_cast<Token>(random() % 30);
    for (int i = 0; i < 40; ++i) {
      if (random() % 3 == 0) {
        text.resize(random() % (text.size() + 1));
        context.cut(text.size());
      }
      for (std::size_t n = random() % 40; n > 0; --n) {
        text.push_back(static_cast<Token>(random() % n_tokens));
      }
      context.extend(text);
      ASSERT_TRUE(std::ranges::equal(context.text(), text));
      ASSERT_EQ(context.check_integrity(), "");
    }
  }
}

TEST(NgramContext, AnotherTextIsCountedFromItsBeginning) {
  NgramContext context;
  context.extend(std::vector<Token>{1, 2, 3, 1, 2, 3});
  context.extend(std::vector<Token>{4, 5});
  EXPECT_EQ(context.check_integrity(), "");
  EXPECT_EQ(context.cache().size(), 1U);
  EXPECT_EQ(tokens_of(context.cache().ngram(0)), std::vector<Token>{4});
}

}  // namespace
}  // namespace outrider
