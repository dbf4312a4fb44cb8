#include "draft/recycle/recycle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "dist/log_probability.h"
#include "testing/chi_square.h"
#include "testing/fake_engine.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

constexpr std::int32_t kTokens = 6;

std::vector<float> row(const std::vector<Token>& best) {
  std::vector<float> values(kTokens, -5.0f);
  float value = 5.0f;
  for (const Token token : best) values[static_cast<std::size_t>(token)] = value -= 1.0f;
  return values;
}

struct Asked {
  Asked(RecycleDrafter& drafter, Token last, std::int32_t max_nodes, std::int32_t branches)
      : text({last}), tree(last) {
    DraftRequest request{.seq = 0,
                         .text = text,
                         .max_nodes = max_nodes,
                         .shape = {.branches = branches},
                         .mask = 1,
                         .tree = &tree};
    EXPECT_TRUE(drafter.draft(std::span<DraftRequest>(&request, 1)).ok());
    EXPECT_EQ(tree.check_integrity(), "");
  }
  std::vector<Token> text;
  TokenTree tree;
};

TEST(Recycle, FollowsTheSuccessorsThatWereLikeliestLast) {
  RecycleDrafter drafter(kTokens, 2);
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  EXPECT_EQ(Asked(drafter, 1, 5, 8).tree.size(), 1) << "nothing is known yet";
  drafter.observe(0, 1, row({4, 4, 2}));
  drafter.observe(0, 1, row({2, 3}));  // the later row counts
  drafter.observe(0, 2, row({5}));
  EXPECT_EQ(drafter.check_integrity(), "");
  const Asked chain(drafter, 1, 3, 1);
  ASSERT_TRUE(chain.tree.is_chain());
  ASSERT_GE(chain.tree.size(), 3);
  EXPECT_EQ(chain.tree.token(1), 2);
  EXPECT_EQ(chain.tree.token(2), 5);
  const Asked wide(drafter, 1, 4, 8);
  EXPECT_EQ(wide.tree.size(), 5);
  EXPECT_NE(wide.tree.child(kRoot, 2), kNoNode);
  EXPECT_NE(wide.tree.child(kRoot, 3), kNoNode);
  EXPECT_GT(wide.tree.node(wide.tree.child(kRoot, 2)).chance,
            wide.tree.node(wide.tree.child(kRoot, 3)).chance);
  EXPECT_EQ(Asked(drafter, 3, 4, 8).tree.size(), 1) << "3 was never seen";
}

TEST(Recycle, KeepsToNodesAndBranches) {
  RecycleDrafter drafter(kTokens, 1);
  for (Token t = 0; t < kTokens; ++t) drafter.observe(0, t, row({(t + 1) % kTokens, t}));
  for (std::int32_t nodes = 0; nodes <= 20; ++nodes) {
    for (std::int32_t branches = 1; branches <= 6; ++branches) {
      const Asked asked(drafter, 0, nodes, branches);
      EXPECT_EQ(asked.tree.drafted(), nodes);
      if (nodes > 0) {
        EXPECT_LE(asked.tree.leaves().size(), static_cast<std::size_t>(branches));
      }
    }
  }
}

TEST(Recycle, WhatWasLearnedStaysOnlyForATextThatHoldsAllOfTheOldOne) {
  RecycleDrafter drafter(kTokens, 1);
  const std::vector<Token> text = {1, 2, 3, 4};
  const auto learned = [&](std::size_t kept) {
    EXPECT_TRUE(drafter.begin(0, 0).ok());
    drafter.observe(0, 1, row({2}));
    drafter.accept(0, text);
    EXPECT_TRUE(drafter.begin(0, kept).ok());
    return Asked(drafter, 1, 1, 1).tree.size() > 1;
  };
  EXPECT_FALSE(learned(0));
  EXPECT_FALSE(learned(2));
  EXPECT_TRUE(learned(3)) << "all but the last token, which no state holds";
  EXPECT_TRUE(learned(4));
  drafter.end(0);
  EXPECT_EQ(drafter.memory_bytes(), 0U);
}

TEST(Recycle, TakesUnderTwoMegabytesForFiftyThousandTokens) {
  RecycleDrafter drafter(50'000, 4);
  EXPECT_EQ(drafter.memory_bytes(), 0U);
  drafter.observe(2, 7, std::vector<float>(50'000, 0.0f));
  EXPECT_LT(drafter.memory_bytes(), 2'000'000U);
}

TEST(Recycle, LeavesTheTextAndIsRightNowAndThen) {
  const std::uint64_t seed = test_seed(3);
  // One token of context decides most: what a table of successors can know.
  const RowFunction rows = random_rows(kVocab, seed, 4.0f, /*memory=*/1);
  const FakeVocabulary vocabulary(kVocab);
  for (const std::int32_t branches : {1, 4}) {
    FakeModel target(capabilities(), rows);
    RecycleDrafter drafter(kVocab, 3);
    Request r = request({1, 2}, 0.7f, seed, 50, 8);
    r.draft.branches = branches;
    const Completion got = complete(target, vocabulary, {&drafter}, std::move(r));
    EXPECT_EQ(got.tokens, reference(rows, {1, 2}, 0.7f, seed, 50)) << "seed " << seed;
    EXPECT_GT(got.speculation.accepted, 10);
    EXPECT_EQ(drafter.check_integrity(), "");
  }
}

// Against a table that is computed plainly, over random rows with ties and impossible tokens.
TEST(Recycle, TheSuccessorsAreTheLikeliestOfTheRow) {
  const std::uint64_t seed = test_seed(5);
  constexpr std::int32_t kMany = 300;
  RecycleDrafter drafter(kMany, 1);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const NoiseKey key = noise_key(seed, i);
    std::vector<float> values;
    for (std::uint32_t t = 0; t < kMany; ++t) {
      const std::uint32_t draw = noise_bits(key, t) % 40;
      values.push_back(draw == 0 ? -std::numeric_limits<float>::infinity()
                                 : static_cast<float>(draw));
    }
    drafter.observe(0, 9, values);
    ASSERT_EQ(drafter.check_integrity(), "");
    std::vector<Token> order;
    for (Token t = 0; t < kMany; ++t) {
      if (!std::isinf(values[static_cast<std::size_t>(t)])) order.push_back(t);
    }
    std::stable_sort(order.begin(), order.end(), [&](Token a, Token b) {
      return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
    });
    const Asked asked(drafter, 9, 200, 200);
    for (std::size_t rank = 0; rank < 8; ++rank) {
      if (order[rank] == 9) continue;
      EXPECT_NE(asked.tree.child(kRoot, order[rank]), kNoNode)
          << "rank " << rank << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace outrider
