#include "draft/suffix/suffix_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "testing/chi_square.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

const TokenizerId kTokenizer = {.hash = 1, .n_vocab = 1000};

DraftRequest request_for(std::span<const Token> text, TokenTree& tree, std::int32_t max_nodes,
                         std::int32_t branches) {
  DraftRequest request;
  request.text = text;
  request.max_nodes = max_nodes;
  request.shape.branches = branches;
  request.mask = 2;
  request.tree = &tree;
  return request;
}

TokenTree draft(SuffixDrafter& drafter, std::span<const Token> text, std::int32_t max_nodes,
                std::int32_t branches) {
  TokenTree tree(text.back());
  DraftRequest request = request_for(text, tree, max_nodes, branches);
  EXPECT_TRUE(drafter.draft(std::span(&request, 1)).ok());
  EXPECT_EQ(tree.check_integrity(), "");
  EXPECT_EQ(drafter.check_integrity(), "");
  return tree;
}

std::vector<Token> chain_of(const TokenTree& tree) {
  std::vector<Token> tokens;
  for (NodeId id = 1; id < tree.size(); ++id) tokens.push_back(tree.token(id));
  return tokens;
}

TEST(SuffixBlend, ChancesSumToAtMostOneAndMoreEvidenceEscapesLess) {
  const std::uint64_t seed = testing::test_seed(20261121);
  std::mt19937_64 random(seed);
  const SuffixBlend blend;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::vector<SuffixIndex::Continuation>> lists(1 + random() % 4);
    std::vector<SuffixLevel> levels;
    for (std::vector<SuffixIndex::Continuation>& list : lists) {
      SuffixLevel level{.length = static_cast<std::uint32_t>(1 + random() % 60)};
      const int n = 1 + static_cast<int>(random() % 8);
      for (Token token = 0; token < n; ++token) {
        list.push_back({.token = token, .count = static_cast<std::uint32_t>(1 + random() % 9)});
        level.total += list.back().count;
      }
      level.total += static_cast<std::uint32_t>(random() % 5);  // some that are not listed
      level.n_distinct = static_cast<std::uint32_t>(list.size() + random() % 3);
      level.first_is_last_used = random() % 2 == 0;
      level.continuations = list;
      levels.push_back(level);
      const float escape = blend.escape(level);
      ASSERT_TRUE(escape > 0.0f && escape <= 0.95f);
      SuffixLevel more = level;
      more.total += 10;
      ASSERT_LE(blend.escape(more), escape);
      more = level;
      more.length += 10;
      ASSERT_LE(blend.escape(more), escape);
    }
    std::vector<SuffixChance> chances;
    blend.blend(levels, chances);
    float sum = 0.0f;
    for (const SuffixChance& chance : chances) {
      ASSERT_GT(chance.chance, 0.0f);
      sum += chance.chance;
    }
    ASSERT_LE(sum, 1.0001f);
    ASSERT_GE(sum, 0.04f);
  }
}

TEST(SuffixDrafter, WhatFollowedBeforeIsDraftedAsAChain) {
  SuffixDrafter drafter(1);
  std::vector<Token> text(40);
  std::iota(text.begin(), text.end(), 100);
  text.insert(text.end(), {110, 111, 112});
  const TokenTree tree = draft(drafter, text, 6, 1);
  EXPECT_TRUE(tree.is_chain());
  EXPECT_EQ(chain_of(tree), (std::vector<Token>{113, 114, 115, 116, 117, 118}));
  for (NodeId id = 1; id < tree.size(); ++id) EXPECT_EQ(tree.node(id).proposed_by, 2u);
  EXPECT_TRUE(draft(drafter, std::vector<Token>{1, 2, 3}, 6, 1).drafted() == 0);  // nothing seen
}

TEST(SuffixDrafter, ContinuationsThatDifferBecomeBranchesTheLastUsedFirst) {
  SuffixDrafter drafter(1);
  const std::vector<Token> text = {1, 2, 3, 4, 5, 90, 1, 2, 3, 6, 7, 91, 1, 2, 3};
  const TokenTree tree = draft(drafter, text, 4, 4);
  EXPECT_EQ(tree.token(1), 6);
  EXPECT_NE(tree.child(kRoot, 4), kNoNode);
  EXPECT_GT(tree.node(1).chance, tree.node(tree.child(kRoot, 4)).chance);
  EXPECT_TRUE(draft(drafter, text, 4, 1).is_chain());
  EXPECT_EQ(draft(drafter, text, 8, 2).leaves().size(), 2u);
}

TEST(SuffixDrafter, ItsGuessesJoinWhatOthersProposedAndTheirLeavesAreNotItsOwn) {
  SuffixDrafter drafter(1);
  const std::vector<Token> text = {1, 2, 3, 4, 5, 90, 1, 2, 3};
  TokenTree tree(text.back());
  const NodeId other = tree.add(kRoot, 77, 0.9f, 1);
  tree.add(other, 78, 0.8f, 1);
  DraftRequest request = request_for(text, tree, 3, /*branches=*/1);
  ASSERT_TRUE(drafter.draft(std::span(&request, 1)).ok());
  EXPECT_EQ(tree.check_integrity(), "");
  EXPECT_EQ(tree.drafted(), 5);
  const NodeId first = tree.child(kRoot, 4);
  ASSERT_NE(first, kNoNode);
  EXPECT_EQ(tree.node(first).proposed_by, DrafterMask{2});
  const NodeId second = tree.child(first, 5);
  ASSERT_NE(second, kNoNode) << "a chain of its own";
  EXPECT_EQ(tree.token(other), 77);
}

TEST(SuffixDrafter, RandomTextsKeepEveryLimitAndGrowTheSameAtOnceAndStepByStep) {
  const std::uint64_t seed = testing::test_seed(20261122);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    SuffixDrafter steps(2);
    std::vector<Token> text = {0};
    while (text.size() < 200) {
      const std::int32_t max_nodes = static_cast<std::int32_t>(random() % 20);
      const std::int32_t branches = 1 + static_cast<std::int32_t>(random() % 6);
      const TokenTree tree = draft(steps, text, max_nodes, branches);
      ASSERT_LE(tree.drafted(), max_nodes);
      ASSERT_LE(tree.leaves().size(), static_cast<std::size_t>(branches));
      SuffixDrafter fresh(1);
      const TokenTree again = draft(fresh, text, max_nodes, branches);
      ASSERT_EQ(chain_of(again), chain_of(tree)) << "seed " << seed << ", round " << round;
      const int n = 1 + static_cast<int>(random() % 5);
      for (int i = 0; i < n; ++i) text.push_back(static_cast<Token>(random() % 5));
    }
  }
}

TEST(SuffixDrafter, WhatAnotherProposedIsMarkedAndNotCounted) {
  SuffixDrafter drafter(1);
  const std::vector<Token> text = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2};
  TokenTree tree(2);
  (void)tree.add(tree.add(kRoot, 3, 0.5f, 1), 99, 0.4f, 1);
  DraftRequest request = request_for(text, tree, 2, 4);
  ASSERT_TRUE(drafter.draft(std::span(&request, 1)).ok());
  EXPECT_EQ(tree.node(1).proposed_by, 3u);
  EXPECT_EQ(tree.node(2).proposed_by, 1u);
  EXPECT_EQ(tree.size(), 5);
  EXPECT_EQ(tree.check_integrity(), "");
}

TEST(SuffixDrafter, ANewTextSeesNothingOfTheOldOneBeyondWhatIsKept) {
  SuffixDrafter drafter(2);
  const std::vector<Token> secret = {1, 2, 50, 51, 52, 1, 2};
  EXPECT_GT(draft(drafter, secret, 8, 1).drafted(), 0);
  ASSERT_TRUE(drafter.begin(0, 2).ok());
  EXPECT_EQ(draft(drafter, std::vector<Token>{1, 2, 9, 1, 2, 9, 1, 2}, 8, 8).child(kRoot, 50),
            kNoNode);
  drafter.end(0);
  EXPECT_EQ(draft(drafter, std::vector<Token>{1, 2}, 8, 8).drafted(), 0);
}

TEST(SuffixDrafter, WholeTextKeptGoesOn) {
  SuffixDrafter drafter(1);
  std::vector<Token> text = {1, 2, 3, 1, 2};
  (void)draft(drafter, text, 4, 1);
  ASSERT_TRUE(drafter.begin(0, text.size()).ok());
  text.insert(text.end(), {3, 1});
  EXPECT_EQ(draft(drafter, text, 1, 1).token(1), 2);
}

TEST(SuffixDrafter, AStoreDraftsWhatTheTextHasNotSeenAndDamageIsTold) {
  testing::TempDir dir;
  SuffixStoreBuilder builder(kTokenizer);
  ASSERT_TRUE(builder.add(std::vector<Token>{10, 11, 12, 13, 14, 15}).ok());
  ASSERT_TRUE(builder.add(std::vector<Token>{20, 11, 12, 30}).ok());
  ASSERT_TRUE(builder.write(dir.file("s")).ok());
  const auto open = [&](const std::string& name) {
    return std::shared_ptr<const SuffixStore>(SuffixStore::open(dir.file(name)).value());
  };
  const std::vector<Token> text = {1, 10, 11, 12};
  {
    SuffixDrafter drafter(1, {open("s")});
    const TokenTree tree = draft(drafter, text, 4, 4);
    EXPECT_EQ(tree.token(1), 13);               // 3 tokens match
    EXPECT_NE(tree.child(kRoot, 30), kNoNode);  // 2 tokens match
    EXPECT_NE(tree.child(1, 14), kNoNode);
    EXPECT_EQ(drafter.note(0), "");
  }
  {  // two stores, one of them twice as sure
    SuffixDrafter drafter(1, {open("s"), open("s")});
    EXPECT_EQ(draft(drafter, text, 3, 1).drafted(), 3);
  }
  std::string bytes = testing::read_bytes(dir.file("s"));
  bytes[sizeof(FileHeader) + 4] ^= 1;
  testing::write_bytes(dir.file("bad"), bytes);
  SuffixDrafter drafter(1, {open("bad")});
  EXPECT_EQ(draft(drafter, text, 4, 4).drafted(), 0);
  EXPECT_NE(drafter.note(0).find("damaged"), std::string::npos);
  EXPECT_EQ(drafter.limit_reason(0), "") << "it still guesses from the text";
}

TEST(SuffixDrafter, MemoryIsReportedAndGivenBack) {
  SuffixDrafter drafter(1);
  std::vector<Token> text(20000);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<Token>(i * i % 997);
  (void)draft(drafter, text, 8, 1);
  const std::size_t used = drafter.memory_bytes();
  EXPECT_GT(used, text.size() * 30);
  drafter.end(0);
  EXPECT_LT(drafter.memory_bytes(), used / 10);
}

TEST(SuffixDrafter, AnInterruptEndsDraftingEarly) {
  SuffixDrafter drafter(1);
  const std::atomic<bool> stop{true};
  drafter.set_interrupt(&stop);
  TokenTree tree(1);
  const std::vector<Token> text = {1, 1, 1};
  DraftRequest request = request_for(text, tree, 4, 1);
  EXPECT_EQ(drafter.draft(std::span(&request, 1)).code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace outrider
