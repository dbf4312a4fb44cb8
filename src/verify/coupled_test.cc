#include "verify/coupled.h"

#include <gtest/gtest.h>

#include <limits>

#include "dist/gumbel.h"

namespace outrider {
namespace {

// A target whose distribution depends on the tokens decided so far.
class HandWritten : public TargetDistributions {
 public:
  explicit HandWritten(std::uint64_t world) : world_(world) {}

  Result<Distribution> at(NodeId) override {
    row_.assign(3, 0.0f);
    std::uint64_t h = world_;
    for (const Token t : decided) h = mix64(h * 31 + static_cast<std::uint64_t>(t) + 1);
    for (std::size_t t = 0; t < row_.size(); ++t) {
      const std::uint64_t bits = mix64(h + t) % 8;
      row_[t] =
          bits == 0 ? -std::numeric_limits<float>::infinity() : 0.5f * static_cast<float>(bits);
    }
    return Distribution{.logits = row_};
  }
  Result<Distribution> peek(NodeId) override { return internal_error("coupled never peeks"); }
  bool accept(Token token) override {
    decided.push_back(token);
    return decided.size() != stop_after;
  }

  std::vector<Token> decided;
  std::size_t stop_after = 0;

 private:
  std::uint64_t world_;
  std::vector<float> row_;
};

// The text that single steps give: what every walk must be a prefix of.
std::vector<Token> plain(std::uint64_t world, std::uint64_t seed, Pos root, std::size_t n) {
  std::vector<Token> text;
  while (text.size() < n) {
    HandWritten target(world);
    target.decided = text;
    const Result<Walk> walk =
        verify_coupled(TokenTree(0), root + static_cast<Pos>(text.size()), seed, target);
    if (!walk.ok()) break;
    EXPECT_EQ(walk->emitted.size(), 1U);
    text.push_back(walk->emitted[0]);
  }
  return text;
}

// All trees over a vocabulary of 3 with up to `nodes` drafted nodes, in the order of construction.
void all_trees(const TokenTree& tree, NodeId from, int nodes, std::vector<TokenTree>& out) {
  out.push_back(tree);
  if (nodes == 0) return;
  for (NodeId parent = from; parent < tree.size(); ++parent) {
    for (Token token = 0; token < 3; ++token) {
      if (tree.child(parent, token) != kNoNode) continue;
      TokenTree next = tree;
      next.add(parent, token, 0.5f, 1);
      all_trees(next, parent, nodes - 1, out);
    }
  }
}

TEST(Coupled, EveryTreeOfUpToThreeNodesGivesThePlainTextInEveryWorld) {
  std::vector<TokenTree> trees;
  all_trees(TokenTree(0), kRoot, 3, trees);
  ASSERT_GT(trees.size(), 100U);
  for (std::uint64_t world = 0; world < 60; ++world) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const Pos root = static_cast<Pos>(world % 7);
      const std::vector<Token> text = plain(world, seed, root, 5);
      for (const TokenTree& tree : trees) {
        HandWritten target(world);
        const Result<Walk> walk = verify_coupled(tree, root, seed, target);
        if (!walk.ok()) {  // only where no token is possible, and then plain decoding ends there
                           // too
          ASSERT_LT(text.size(), 4U);
          continue;
        }
        ASSERT_LE(walk->emitted.size(), text.size());
        for (std::size_t i = 0; i < walk->emitted.size(); ++i) ASSERT_EQ(walk->emitted[i], text[i]);
        ASSERT_EQ(walk->emitted, target.decided);
        ASSERT_EQ(walk->emitted.size(), walk->accepted() + 1);
        // It goes as far as the tree allows: the node after the path is not in the tree.
        ASSERT_EQ(tree.child(walk->path.back(), walk->emitted.back()), kNoNode);
        for (std::size_t i = 1; i < walk->path.size(); ++i) {
          ASSERT_EQ(tree.node(walk->path[i]).parent, walk->path[i - 1]);
          ASSERT_EQ(tree.token(walk->path[i]), walk->emitted[i - 1]);
        }
      }
    }
  }
}

TEST(Coupled, AWalkEndsWhereTheTextEndsAndKeepsTheMatchedNode) {
  const std::uint64_t world = 3;
  const std::vector<Token> text = plain(world, 1, 0, 4);
  ASSERT_EQ(text.size(), 4U);
  TokenTree tree(0);
  NodeId at = kRoot;
  for (std::size_t i = 0; i < 3; ++i) at = tree.add(at, text[i], 0.9f, 1);
  for (std::size_t stop = 1; stop <= 4; ++stop) {
    HandWritten target(world);
    target.stop_after = stop;
    const Result<Walk> walk = verify_coupled(tree, 0, 1, target);
    ASSERT_TRUE(walk.ok());
    EXPECT_EQ(walk->emitted.size(), stop);
    EXPECT_EQ(walk->accepted(), std::min<std::size_t>(stop, 3));
  }
}

class Impossible : public TargetDistributions {
 public:
  Result<Distribution> at(NodeId) override { return Distribution{}; }
  Result<Distribution> peek(NodeId) override { return Distribution{}; }
  bool accept(Token) override { return true; }
};

TEST(Coupled, NoPossibleTokenIsAnErrorThatNamesThePosition) {
  Impossible target;
  const Result<Walk> walk = verify_coupled(TokenTree(0), 41, 1, target);
  ASSERT_FALSE(walk.ok());
  EXPECT_NE(walk.status().message().find("position 42"), std::string::npos);
}

}  // namespace
}  // namespace outrider
