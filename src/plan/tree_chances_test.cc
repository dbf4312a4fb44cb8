// After each addition the chances are those that the rules, written down plainly, give from
// nothing.
#include "plan/tree_chances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>

#include "base/random.h"
#include "testing/chi_square.h"

namespace outrider {
namespace {

constexpr DrafterMask kFirst = 1;

// Somebody's tables, in which nothing is as a drafter says it is.
struct Learned {
  AcceptanceTable table;
  AcceptanceBias bias;
};

Learned learned(std::uint64_t seed) {
  Learned result;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const std::uint64_t draw = mix64(seed ^ mix64(i));
    const GuessClaim guess{.drafter = draw % 3,
                           .depth = 1 + static_cast<std::int32_t>(draw / 3 % 6),
                           .confidence = static_cast<float>(draw / 18 % 100) / 100.0f};
    const bool right = draw / 1800 % 10 < 3 + 2 * guess.drafter;
    result.table.learn(guess, right);
    if (i < 20) result.bias.learn(guess.drafter, 0.5, right);
  }
  return result;
}

// What drafter `d` says of node `id`, given that its parent is right.
GuessClaim guess_of(const TokenTree& tree, const Claim& claim) {
  const TokenTree::Node& node = tree.node(claim.node);
  float before = 1.0f;
  for (const Claim& other : tree.claims()) {
    if (other.node == node.parent && other.drafter == claim.drafter) before = other.chance;
  }
  return {.drafter = static_cast<std::size_t>(claim.drafter),
          .depth = node.depth,
          .confidence = before > 0.0f ? std::min(1.0f, claim.chance / before) : 0.0f};
}

// The best of what its drafters are worth, without regard to its siblings.
double own_chance(const TokenTree& tree, NodeId id, const Learned& known) {
  double best = 0.0;
  for (const Claim& claim : tree.claims()) {
    if (claim.node != id || tree.is_filler(id)) continue;
    const GuessClaim guess = guess_of(tree, claim);
    best = std::max(best, known.bias.shifted(guess.drafter, known.table.chance(guess)));
  }
  return best;
}

// The rules, level by level, from nothing.
std::vector<float> plain_chances(const TokenTree& tree, const Learned& known) {
  std::vector<std::tuple<NodeId, double, NodeId>> children;  // parent, less its chance, id
  for (NodeId id = 1; id < tree.size(); ++id) {
    children.emplace_back(tree.node(id).parent, -own_chance(tree, id, known), id);
  }
  std::sort(children.begin(), children.end());
  std::vector<float> chances(static_cast<std::size_t>(tree.size()), 1.0f);
  NodeId before = kNoNode;
  double left = 1.0;
  for (const auto& [parent, less, id] : children) {
    if (parent != before) left = 1.0;
    before = parent;
    const double share = std::min(-less, left);
    left -= share;
    chances[static_cast<std::size_t>(id)] =
        static_cast<float>(share) * chances[static_cast<std::size_t>(parent)];
  }
  return chances;
}

std::string shown(const TokenTree& tree) {
  std::string text;
  for (const Claim& claim : tree.claims()) {
    text += " " + std::to_string(tree.node(claim.node).parent) + ">" + std::to_string(claim.node) +
            " by " + std::to_string(claim.drafter) + " " + std::to_string(claim.chance);
  }
  return text;
}

// To the bit.
void expect_as_from_nothing(const TokenTree& tree, const TreeChances& chances,
                            const Learned& known) {
  const std::vector<float> plain = plain_chances(tree, known);
  ASSERT_EQ(chances.values().size(), plain.size()) << shown(tree);
  for (std::size_t id = 0; id < plain.size(); ++id) {
    ASSERT_EQ(chances.values()[id], plain[id]) << "node " << id << " of" << shown(tree);
  }
}

void expect_falling(std::span<const TreeChances* const> trees, const FallingChances& falling) {
  std::vector<float> all;
  for (const TreeChances* chances : trees) {
    if (chances->values().empty()) continue;
    all.insert(all.end(), chances->values().begin() + 1, chances->values().end());
  }
  std::sort(all.begin(), all.end(), std::greater<float>());
  ASSERT_TRUE(std::ranges::equal(all, falling.values()));
}

struct Grown {
  TokenTree tree{0};
  TreeChances chances;
  FallingChances falling;
};

// All ways to go on by `steps` additions.
void grow_every_way(const Grown& grown, int steps, const Learned& known, std::int64_t* n_trees) {
  if (steps == 0 || ::testing::Test::HasFatalFailure()) return;
  const auto go_on = [&](Grown next) {
    ++*n_trees;
    next.chances.update(next.tree, known.table, known.bias, &next.falling);
    expect_as_from_nothing(next.tree, next.chances, known);
    const TreeChances* const all[] = {&next.chances};
    expect_falling(all, next.falling);
    grow_every_way(next, steps - 1, known, n_trees);
  };
  for (NodeId at = 0; at < grown.tree.size(); ++at) {
    for (const DrafterMask by : {DrafterMask{1}, DrafterMask{2}}) {
      for (const Token token : {1, 2}) {
        for (const float chance : {0.3f, 0.8f}) {
          Grown next = grown;
          next.tree.add(at, token, chance, by);
          go_on(std::move(next));
        }
      }
    }
  }
}

TEST(TreeChances, AreThoseFromNothingAfterEachStepOfEverySmallTree) {
  const Learned known = learned(3);
  std::int64_t n_trees = 0;
  Grown empty;
  empty.chances.update(empty.tree, known.table, known.bias, &empty.falling);
  grow_every_way(empty, 4, known, &n_trees);
  EXPECT_GT(n_trees, 80000);
}

// Adds a node, a second opinion or a filler.
void grow_at_random(TokenTree& tree, std::uint64_t& state) {
  const auto below = [&state](std::int32_t n) {
    return static_cast<std::int32_t>(mix64(++state) % static_cast<std::uint64_t>(n));
  };
  const NodeId at = below(3) == 0 ? below(tree.size()) : tree.size() - 1;
  if (below(20) == 0) {
    tree.add(at, 100 + tree.size(), 0.0f, kFillerMask);
  } else {
    const float share = static_cast<float>(below(100)) / 99.0f;
    const float chance = below(4) == 0 ? share : share * tree.node(at).chance;
    tree.add(at, below(4), chance, DrafterMask{1} << below(3));
  }
}

TEST(TreeChances, AreThoseFromNothingWhileSeveralRandomTreesGrow) {
  std::uint64_t state = testing::test_seed(17);
  for (int round = 0; round < 300; ++round) {
    const Learned known = learned(mix64(++state));
    std::vector<TokenTree> trees(1 + mix64(++state) % 4, TokenTree(0));
    std::vector<TreeChances> chances(trees.size());
    std::vector<const TreeChances*> all;
    for (const TreeChances& one : chances) all.push_back(&one);
    FallingChances falling;
    for (int step = 0; step < 60; ++step) {
      const std::size_t i = mix64(++state) % trees.size();
      for (std::uint64_t n = mix64(++state) % 4; n > 0; --n) grow_at_random(trees[i], state);
      chances[i].update(trees[i], known.table, known.bias, &falling);
      expect_as_from_nothing(trees[i], chances[i], known);
      expect_falling(all, falling);
      if (HasFatalFailure()) return;
    }
  }
}

// The example of the header.
TEST(TreeChances, TheLikelierSiblingIsServedFirstWhenItComesLater) {
  const Learned unknown;
  for (const auto& [second, first_after, second_after] :
       {std::tuple{0.6f, 0.7f, 0.3f}, std::tuple{0.8f, 0.2f, 0.8f}}) {
    TokenTree tree(0);
    TreeChances chances;
    const NodeId a = tree.add(kRoot, 1, 0.7f, kFirst);
    const NodeId below = tree.add(a, 3, 0.35f, kFirst);
    chances.update(tree, unknown.table, unknown.bias);
    EXPECT_NEAR(chances.values()[static_cast<std::size_t>(below)], 0.35f, 1e-5f);
    const NodeId b = tree.add(kRoot, 2, second, kFirst);
    chances.update(tree, unknown.table, unknown.bias);
    EXPECT_NEAR(chances.values()[static_cast<std::size_t>(a)], first_after, 1e-5f);
    EXPECT_NEAR(chances.values()[static_cast<std::size_t>(b)], second_after, 1e-5f);
    EXPECT_NEAR(chances.values()[static_cast<std::size_t>(below)], first_after / 2.0f, 1e-5f);
  }
}

TEST(TreeChances, AnotherTreeBeginsWithNothing) {
  const Learned unknown;
  TreeChances chances;
  for (const float claim : {0.4f, 0.9f}) {
    TokenTree tree(0);
    chances.clear();
    EXPECT_TRUE(chances.values().empty());
    tree.add(kRoot, 1, claim, kFirst);
    chances.update(tree, unknown.table, unknown.bias);
    EXPECT_NEAR(chances.values()[1], claim, 1e-5f);
  }
}

}  // namespace
}  // namespace outrider
