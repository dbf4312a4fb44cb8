#include "plan/width_plan.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace outrider {
namespace {

double sum_of_chances(const TokenTree& tree) {
  double sum = 0.0;
  for (NodeId id = 1; id < tree.size(); ++id) sum += tree.node(id).chance;
  return sum;
}

// The largest sum of chances over all parent-closed subsets of at most `nodes` drafted nodes.
double best_subset(const TokenTree& tree, int nodes) {
  double best = 0.0;
  for (unsigned mask = 0; mask < (1U << tree.drafted()); ++mask) {
    double sum = 0.0;
    int count = 0;
    bool closed = true;
    for (NodeId id = 1; id < tree.size() && closed; ++id) {
      if ((mask >> (id - 1) & 1) == 0) continue;
      const NodeId parent = tree.node(id).parent;
      closed = parent == kRoot || (mask >> (parent - 1) & 1) != 0;
      sum += tree.node(id).chance;
      ++count;
    }
    if (closed && count <= nodes) best = std::max(best, sum);
  }
  return best;
}

TokenTree random_tree(std::uint64_t seed, std::uint32_t nodes) {
  TokenTree tree(0);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const NoiseKey key = noise_key(seed, i);
    tree.add(static_cast<NodeId>(noise_bits(key, 0) % tree.size()), static_cast<Token>(i),
             static_cast<float>(noise_uniform(key, 1)), 1);
  }
  return tree;
}

TEST(WidthPlan, KeepsTheBestParentClosedSubsetOfEverySize) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const TokenTree proposed = random_tree(seed, 10);
    for (int width = 1; width <= 12; ++width) {
      TokenTree sent = proposed;
      WidthRequest request[] = {{&sent, width}};
      plan_widths(request, 100);
      ASSERT_LE(sent.size(), width);
      ASSERT_EQ(sent.check_integrity(), "");
      ASSERT_NEAR(sum_of_chances(sent), best_subset(proposed, width - 1), 1e-5) << "seed " << seed;
    }
  }
}

TEST(WidthPlan, LeavesStayWithinTheirLimitAndTheBestBranchesAreKept) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const TokenTree proposed = random_tree(seed, 12);
    for (std::int32_t leaves = 1; leaves <= 5; ++leaves) {
      TokenTree sent = proposed;
      WidthRequest request[] = {{.tree = &sent, .max_width = 13, .max_leaves = leaves}};
      plan_widths(request, 100);
      ASSERT_EQ(sent.check_integrity(), "");
      ASSERT_LE(sent.leaves().size(), static_cast<std::size_t>(leaves));
      // Nothing that would fit was left out: every node that is not there would be one leaf more.
      if (sent.leaves().size() < static_cast<std::size_t>(leaves)) {
        ASSERT_EQ(sent.size(), proposed.size());
      }
    }
  }
  TokenTree fork(0);
  const NodeId weak = fork.add(kRoot, 1, 0.3f, 1);
  const NodeId strong = fork.add(kRoot, 2, 0.6f, 1);
  fork.add(weak, 3, 0.2f, 1);
  fork.add(strong, 4, 0.5f, 1);
  WidthRequest request[] = {{.tree = &fork, .max_width = 5, .max_leaves = 1}};
  plan_widths(request, 100);
  ASSERT_EQ(fork.size(), 3);
  EXPECT_EQ(fork.token(1), 2);
  EXPECT_EQ(fork.token(2), 4);
}

TEST(WidthPlan, TheSharedBudgetGoesToTheLikeliestNodes) {
  TokenTree sure(0), unsure(0);
  NodeId at = kRoot;
  for (Token t = 1; t <= 4; ++t) at = sure.add(at, t, 0.9f, 1);
  at = kRoot;
  for (Token t = 1; t <= 4; ++t) at = unsure.add(at, t, 0.4f, 1);
  WidthRequest requests[] = {{&unsure, 5}, {&sure, 5}};
  plan_widths(requests, 7);
  EXPECT_EQ(sure.size(), 5);
  EXPECT_EQ(unsure.size(), 2);
}

TEST(WidthPlan, RootsStayWhenTheBudgetIsTooSmallForThem) {
  TokenTree a = random_tree(1, 5), b = random_tree(2, 5);
  WidthRequest requests[] = {{&a, 6}, {&b, 6}};
  plan_widths(requests, 1);
  EXPECT_EQ(a.size(), 1);
  EXPECT_EQ(b.size(), 1);
}

}  // namespace
}  // namespace outrider
