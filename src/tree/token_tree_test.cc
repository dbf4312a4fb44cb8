#include "tree/token_tree.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace outrider {
namespace {

TEST(TokenTree, ARootAloneIsAChain) {
  const TokenTree tree(7);
  EXPECT_EQ(tree.size(), 1);
  EXPECT_EQ(tree.drafted(), 0);
  EXPECT_TRUE(tree.is_chain());
  EXPECT_EQ(tree.leaves(), std::vector<NodeId>{0});
  EXPECT_EQ(tree.check_integrity(), "");
}

TEST(TokenTree, AddingTheSameChildMergesProposersAndKeepsTheLargerChance) {
  TokenTree tree(1);
  const NodeId a = tree.add(kRoot, 5, 0.3f, 1);
  const NodeId b = tree.add(kRoot, 5, 0.6f, 2);
  EXPECT_EQ(a, b);
  EXPECT_EQ(tree.size(), 2);
  EXPECT_EQ(tree.node(a).proposed_by, 3U);
  EXPECT_FLOAT_EQ(tree.node(a).chance, 0.6f);
}

TEST(TokenTree, AChildIsNeverLikelierThanItsParent) {
  TokenTree tree(1);
  const NodeId a = tree.add(kRoot, 5, 0.3f, 1);
  const NodeId b = tree.add(a, 6, 0.9f, 1);
  EXPECT_FLOAT_EQ(tree.node(b).chance, 0.3f);
  EXPECT_EQ(tree.check_integrity(), "");
}

TEST(TokenTree, PruningANodeDropsWhatHangsBelowIt) {
  TokenTree tree(1);
  const NodeId a = tree.add(kRoot, 2, 0.9f, 1);
  const NodeId b = tree.add(kRoot, 3, 0.8f, 1);
  tree.add(a, 4, 0.7f, 1);
  const NodeId d = tree.add(b, 5, 0.6f, 1);
  const std::vector<NodeId> old_id = tree.prune({true, false, true, true, true});
  EXPECT_EQ(old_id, (std::vector<NodeId>{kRoot, b, d}));
  EXPECT_EQ(tree.token(1), 3);
  EXPECT_EQ(tree.token(2), 5);
  EXPECT_EQ(tree.node(2).parent, 1);
  EXPECT_TRUE(tree.is_chain());
  EXPECT_EQ(tree.check_integrity(), "");
}

TEST(TokenTree, PathsAndChildrenAreFound) {
  TokenTree tree(1);
  const NodeId a = tree.add(kRoot, 2, 0.9f, 1);
  const NodeId b = tree.add(kRoot, 3, 0.8f, 1);
  const NodeId c = tree.add(a, 3, 0.7f, 1);
  EXPECT_EQ(tree.child(kRoot, 3), b);
  EXPECT_EQ(tree.child(a, 3), c);
  EXPECT_EQ(tree.child(c, 3), kNoNode);
  EXPECT_EQ(tree.path_to(c), (std::vector<NodeId>{kRoot, a, c}));
  EXPECT_EQ(tree.leaves(), (std::vector<NodeId>{b, c}));
  EXPECT_EQ(tree.max_depth(), 2);
  EXPECT_FALSE(tree.is_chain());
}

TEST(TokenTree, KeepsItsInvariantsThroughRandomOperations) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    TokenTree tree(0);
    for (std::uint32_t i = 0; i < 60; ++i) {
      const NoiseKey key = noise_key(seed, i);
      const NodeId parent = static_cast<NodeId>(noise_bits(key, 0) % tree.size());
      tree.add(parent, static_cast<Token>(noise_bits(key, 1) % 4),
               static_cast<float>(noise_uniform(key, 2)), 1U << (noise_bits(key, 3) % 3));
      ASSERT_EQ(tree.check_integrity(), "") << "seed " << seed << ", addition " << i;
      if (i % 20 != 19) continue;
      std::vector<bool> keep;
      for (NodeId id = 0; id < tree.size(); ++id) {
        keep.push_back(noise_bits(key, 100 + static_cast<std::uint32_t>(id)) % 4 != 0);
      }
      const TokenTree before = tree;
      const std::vector<NodeId> old_id = tree.prune(keep);
      ASSERT_EQ(tree.check_integrity(), "") << "seed " << seed << ", pruned after " << i;
      for (NodeId id = 0; id < tree.size(); ++id) {
        ASSERT_EQ(tree.token(id), before.token(old_id[static_cast<std::size_t>(id)]));
      }
    }
  }
}

TEST(TokenTree, AnEstimateIsBoundedByTheParentsAndBoundsWhatLiesBelow) {
  TokenTree tree(0);
  const NodeId a = tree.add(kRoot, 1, 0.9f, 1);
  const NodeId b = tree.add(a, 2, 0.8f, 1);
  const NodeId c = tree.add(kRoot, 3, 0.6f, 1);
  tree.set_chance(a, 0.5f);
  EXPECT_EQ(tree.node(a).chance, 0.5f);
  EXPECT_EQ(tree.node(b).chance, 0.5f);
  EXPECT_EQ(tree.node(c).chance, 0.6f);
  tree.set_chance(b, 0.7f);
  EXPECT_EQ(tree.node(b).chance, 0.5f);
  EXPECT_EQ(tree.check_integrity(), "");
}

}  // namespace
}  // namespace outrider
