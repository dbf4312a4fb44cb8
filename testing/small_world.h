// SmallWorld: a target and a draft over a tiny vocabulary, with every probability known, and what
// the rules must do in it, computed the slow and obvious way.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "dist/draws.h"
#include "tree/token_tree.h"
#include "verify/chance.h"
#include "verify/walk.h"

namespace outrider::testing {

using Text = std::vector<Token>;
// A text's probability.
using Texts = std::map<Text, double>;

struct WorldOptions {
  std::int32_t n_vocab = 3;
  std::uint64_t seed = 0;
  double zeros = 0.25;    // chance that a probability is 0
  double likeness = 0.0;  // 1: the draft is the target; 0: they have nothing to do with each other
  bool memoryless = false;  // the same distributions after every text
};

class SmallWorld {
 public:
  explicit SmallWorld(const WorldOptions& options) : options_(options) {}

  std::int32_t n_vocab() const { return options_.n_vocab; }
  Pmf target(std::span<const Token> text) const;
  std::vector<float> target_logits(std::span<const Token> text) const;  // [n_vocab]
  Pmf draft(std::span<const Token> text) const;

  // The target's own distribution of the next `length` tokens.
  Texts plain(std::size_t length) const;

 private:
  std::uint64_t key_of(std::span<const Token> text) const;

  WorldOptions options_;
};

// A tree's shape: the parent of each drafted node, in order; 0 is the root.
using Shape = std::vector<NodeId>;

// Every shape with up to `max_nodes` drafted nodes, at most `max_depth` deep, no node with more
// than `max_children` children. Chains are among them, and the empty shape.
std::vector<Shape> all_shapes(int max_nodes, int max_depth, int max_children);

// Depth of the deepest node; 0 when there are none.
std::size_t depth_of(const Shape& shape);

// In how many ways its nodes can be drawn without replacement from `n_vocab` possible tokens.
double ways_to_draw(const Shape& shape, std::int32_t n_vocab);

// `n` shapes exactly `depth` deep, no node with more than n_vocab children, each to be drawn in at
// most `max_ways` ways. Not uniform: each node has 0 to n_vocab children with equal chances.
std::vector<Shape> random_shapes(std::size_t n, std::size_t depth, std::int32_t n_vocab,
                                 double max_ways, std::uint64_t seed);

enum class Proposals {
  kDrawn,   // from the world's draft, without replacement; fewer than the shape says when no more
            // are possible
  kOneHot,  // ids counted up from the parent's depth
  kMixed,   // the first half (rounded up) of a node's children drawn, the rest one-hot, and maybe
            // the same token as a drawn one
};

// The shape filled with tokens. What would hang below a child that is not there is not there.
TokenTree fill_shape(const SmallWorld& world, const Shape& shape, Proposals proposals,
                     Chance& chance, Draws& draws);

// The world's target as a rule sees it. Rows come as sparse entries in a scrambled order, so that a
// rule which confuses index and id fails.
class WorldTarget : public TargetDistributions {
 public:
  WorldTarget(const SmallWorld& world, const TokenTree& tree) : world_(world), tree_(tree) {}

  Result<Distribution> at(NodeId node) override;
  Result<Distribution> peek(NodeId node) override;
  bool accept(Token token) override {
    decided.push_back(token);
    return decided.size() != stop_after;
  }

  Text decided;
  std::size_t stop_after = 0;  // the text ends with this token; 0: it does not

 private:
  Result<Distribution> row(std::span<const Token> text);

  const SmallWorld& world_;
  const TokenTree& tree_;
  std::vector<float> logits_;
  std::vector<Token> tokens_;
};

// The slow and obvious rejection rule, as the distribution of the text that one step says: sums
// over everything that can happen, straight from the formulas, dense arrays, no shared code.
Texts reference_rejection(const SmallWorld& world, const TokenTree& tree, const Draws& draws);

// Likewise block verification of a drawn chain.
Texts reference_block(const SmallWorld& world, const TokenTree& tree, const Draws& draws);

// Texts of up to `length` tokens, each gone on by the target itself to `length` of them.
Texts continued(const SmallWorld& world, const Texts& texts, std::size_t length);

// The largest difference of probabilities, over all texts of both.
double distance(const Texts& a, const Texts& b);

}  // namespace outrider::testing
