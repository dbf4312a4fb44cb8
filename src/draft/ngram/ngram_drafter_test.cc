#include "draft/ngram/ngram_drafter.h"

#include <gtest/gtest.h>

#include <random>

#include "testing/chi_square.h"
#include "testing/naive_ngrams.h"

namespace outrider {
namespace {

using Tokens = std::vector<Token>;

TokenTree draft(NgramDrafter& drafter, const Tokens& text, std::int32_t max_nodes, SeqId seq = 0) {
  TokenTree tree(text.back());
  DraftRequest request{.seq = seq, .text = text, .max_nodes = max_nodes, .mask = 4, .tree = &tree};
  EXPECT_TRUE(drafter.draft(std::span(&request, 1)).ok());
  EXPECT_EQ(tree.check_integrity(), "");
  EXPECT_TRUE(tree.is_chain());
  return tree;
}

Tokens tokens_of(const TokenTree& tree) {
  Tokens tokens;
  for (NodeId id = 1; id < tree.size(); ++id) tokens.push_back(tree.token(id));
  return tokens;
}

Tokens random_text(std::mt19937_64& random, std::size_t length, Token n_tokens) {
  Tokens text(length);
  for (Token& token : text) {
    token = static_cast<Token>(std::min(random() % static_cast<std::uint64_t>(n_tokens),
                                        random() % static_cast<std::uint64_t>(n_tokens)));
  }
  return text;
}

TEST(NgramDrafter, GuessesGoOnFromTheTextAndFromEachOther) {
  NgramDrafter drafter;
  const Tokens text = {1, 2, 3, 4, 5, 6, 7, 1, 2, 3};
  EXPECT_EQ(tokens_of(draft(drafter, text, 4)), Tokens({4, 5, 6, 7}));
  EXPECT_EQ(tokens_of(draft(drafter, text, 0)), Tokens());
  EXPECT_EQ(tokens_of(draft(drafter, {1, 2, 3, 9}, 4)), Tokens());
}

TEST(NgramDrafter, EveryDraftIsWhatTheRulesSayTokenByToken) {
  std::mt19937_64 random(testing::test_seed(6104));
  std::int64_t drafted = 0;
  for (int round = 0; round < 60; ++round) {
    const Token n_tokens = 2 + static_cast<Token>(random() % 10);
    const Tokens corpus_text = random_text(random, 200, n_tokens);
    const Tokens dynamic_text = random_text(random, 100, n_tokens);
    const std::shared_ptr<NgramCache> corpus = std::make_shared<NgramCache>();
    const std::shared_ptr<NgramCache> dynamic = std::make_shared<NgramCache>();
    corpus->count(corpus_text, 0, kStaticNgram, kStaticNgram);
    dynamic->count(dynamic_text, 0, 1, kMaxNgram);
    testing::NaiveNgrams naive_corpus;
    testing::NaiveNgrams naive_dynamic;
    naive_corpus.count(corpus_text, kStaticNgram, kStaticNgram);
    naive_dynamic.count(dynamic_text, 1, kMaxNgram);
    NgramDrafter drafter(round % 3 == 0 ? nullptr : corpus, round % 2 == 0 ? nullptr : dynamic);
    const Tokens whole = random_text(random, 60, n_tokens);
    for (std::size_t length = 1; length <= whole.size(); ++length) {
      const Tokens text(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      drafter.accept(0, text);
      testing::NaiveNgrams context;
      context.count(text, 1, kMaxNgram);
      Tokens expected;
      Tokens behind = text;
      while (expected.size() < 5) {
        const Token token =
            testing::naive_guess(&context, round % 2 == 0 ? nullptr : &naive_dynamic,
                                 round % 3 == 0 ? nullptr : &naive_corpus, behind);
        if (token == kNoToken) break;
        expected.push_back(token);
        behind.push_back(token);
      }
      ASSERT_EQ(tokens_of(draft(drafter, text, 5)), expected);
      drafted += static_cast<std::int64_t>(expected.size());
    }
    ASSERT_EQ(drafter.check_integrity(), "");
  }
  EXPECT_GT(drafted, 1000);
}

TEST(NgramDrafter, ANewTextKeepsOnlyWhatItSharesWithTheOneBefore) {
  NgramDrafter drafter;
  const Tokens old_text = {1, 2, 3, 4, 5, 1, 2, 3};
  EXPECT_FALSE(tokens_of(draft(drafter, old_text, 3)).empty());
  ASSERT_TRUE(drafter.begin(0, 4).ok());
  EXPECT_EQ(drafter.check_integrity(), "");
  EXPECT_EQ(tokens_of(draft(drafter, {1, 2, 3, 4, 9, 1, 2, 3}, 2)), Tokens({4, 9}));
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  EXPECT_EQ(tokens_of(draft(drafter, {7, 1, 2, 3}, 3)), Tokens()) << "nothing is left";
}

TEST(NgramDrafter, OneSequencesTextNeverDraftsForAnother) {
  NgramDrafter drafter;
  drafter.accept(0, Tokens({1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(tokens_of(draft(drafter, {9, 1, 2, 3}, 3, /*seq=*/1)), Tokens());
  drafter.learn(0);
  EXPECT_EQ(tokens_of(draft(drafter, {9, 1, 2, 3}, 3, /*seq=*/1)), Tokens())
      << "without a dynamic cache there is nothing to learn into";
}

TEST(NgramDrafter, WhatTheOperatorLetsItLearnDraftsForLaterTexts) {
  const std::shared_ptr<NgramCache> dynamic = std::make_shared<NgramCache>();
  NgramDrafter drafter(nullptr, dynamic);
  drafter.accept(0, Tokens({1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_TRUE(dynamic->empty()) << "never by itself";
  drafter.learn(0);
  drafter.end(0);
  EXPECT_EQ(tokens_of(draft(drafter, {9, 1, 2, 3}, 1, /*seq=*/1)), Tokens({4}));
  EXPECT_EQ(dynamic->check_integrity(), "");
}

TEST(NgramDrafter, CachesComeAndGoBetweenDrafts) {
  const std::shared_ptr<NgramCache> learned = std::make_shared<NgramCache>();
  NgramDrafter drafter(nullptr, learned);
  NgramCache four;
  for (int i = 0; i < 4; ++i) four.count(Tokens({1, 2, 3, 4}), 0, 1, kMaxNgram);
  const std::shared_ptr<const NgramCache> cache = std::make_shared<NgramCache>(four);
  for (const NgramTier tier : {NgramTier::kStatic, NgramTier::kDynamic}) {
    ASSERT_TRUE(drafter.begin(0, 0).ok());
    EXPECT_EQ(tokens_of(draft(drafter, {9, 1, 2, 3}, 1)), Tokens());
    drafter.set_cache(tier, cache);
    EXPECT_EQ(tokens_of(draft(drafter, {9, 1, 2, 3}, 1)), Tokens({4}));
    EXPECT_EQ(drafter.note(0), "");
    drafter.remove_cache(tier, "it was taken away");
    EXPECT_EQ(tokens_of(draft(drafter, {9, 1, 2, 3}, 1)), Tokens());
    EXPECT_EQ(drafter.note(0), "it was taken away");
    EXPECT_EQ(drafter.limit_reason(0), "") << "it still guesses from the text";
    ASSERT_TRUE(drafter.begin(0, 0).ok());
    EXPECT_EQ(drafter.note(0), "") << "the next text never had it";
    drafter.remove_cache(tier, "again");
    EXPECT_EQ(drafter.note(0), "") << "there was none";
  }
  drafter.set_cache(NgramTier::kDynamic, cache);
  drafter.accept(0, Tokens({5, 6, 7, 8, 5, 6, 7, 8}));
  drafter.learn(0);
  EXPECT_EQ(cache->size(), four.size()) << "what was put here is only read";
  EXPECT_TRUE(learned->empty());
}

TEST(NgramDrafter, MemoryIsGivenBackWithTheText) {
  NgramDrafter drafter;
  std::mt19937_64 random(testing::test_seed(6105));
  drafter.accept(2, random_text(random, 5000, 1000));
  EXPECT_GT(drafter.memory_bytes(), 5000U * 100);
  drafter.end(2);
  EXPECT_LT(drafter.memory_bytes(), 1000U);
}

}  // namespace
}  // namespace outrider
