// TokenTree: the tokens of one sequence that one target step checks.
//
// Node 0, the root, is the last token of the text: it is already decided, but the target has not
// seen it yet. Every other node is a drafted token; a path from the root is one guess of how the
// text goes on. A chain is a tree in which every node has at most one child.
//
//     the             depth 0   the root, decided
//      +- cat         depth 1   drafted
//      |   +- sat     depth 2   drafted
//      +- dog         depth 1   drafted
//
// Invariants, restated by check_integrity():
//  (1) Node 0 has no parent; every other node's parent has a smaller index. So a loop in
//      index order over the nodes meets parents first, and so does a batch, whose cells then grow
//      along every path (exactness on llama.cpp needs that).
//  (2) depth(node) = depth(parent) + 1.
//  (3) Siblings carry different tokens: a path is determined by its tokens.
//  (4) 0 <= chance(child) <= chance(parent) <= 1 for a node's estimate to be reached and accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace outrider {

// Which drafters proposed a node: bit i for the i-th drafter of the engine.
using DrafterMask = std::uint32_t;

// Drafters at once; the last bit is kFillerMask.
inline constexpr std::size_t kMaxDrafters = 31;

// Marks what nobody proposed: nodes that only fill a step up to a width that takes less time.
inline constexpr DrafterMask kFillerMask = DrafterMask{1} << kMaxDrafters;

// What one drafter says of a node.
struct Claim {
  NodeId node = kNoNode;
  std::int32_t drafter = 0;  // its index
  float chance = 0.0f;       // by its estimate, that the walk reaches and accepts the node
};

class TokenTree {
 public:
  struct Node {
    Token token = kNoToken;
    NodeId parent = kNoNode;
    std::int32_t depth = 0;
    float chance = 1.0f;          // estimated chance that the walk reaches and accepts this node
    DrafterMask proposed_by = 0;  // 0 for the root only
    std::int32_t first_by = -1;   // the drafter that proposed it first; -1 for the root
    std::int32_t draw = -1;       // what its children were drawn from (dist/draws.h); -1: nothing
  };

  explicit TokenTree(Token root);

  // Adds `token` below `parent` and returns its id; `chance` is the drafter's own estimate. When
  // `parent` has such a child already, that child is returned with `proposed_by` merged and the
  // larger chance kept (bounded by the parent's). REQUIRES: 0 <= parent < size().
  NodeId add(NodeId parent, Token token, float chance, DrafterMask proposed_by);

  // What the children of `node` were drawn from: see Node::draw.
  void set_draw(NodeId node, std::int32_t draw) {
    nodes_[static_cast<std::size_t>(node)].draw = draw;
  }

  // What was said of nodes when they were added, in that order: each add() is a claim of the first
  // drafter in its mask. Several drafters may have claimed a node, and one more than once.
  std::span<const Claim> claims() const { return claims_; }

  // Lowers (or raises) the estimate of `node`, bounded by its parent's; what lies below it is
  // lowered with it. REQUIRES: 0 < node < size().
  void set_chance(NodeId node, float chance);

  // Sets the estimates of all nodes: [size()], the root's is ignored. REQUIRES: none is
  // above its parent's.
  void set_chances(std::span<const float> chances);

  // Number of nodes, root included: the sequence's width in the step.
  std::int32_t size() const { return static_cast<std::int32_t>(nodes_.size()); }
  std::int32_t drafted() const { return size() - 1; }
  const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  Token token(NodeId id) const { return node(id).token; }
  bool is_filler(NodeId id) const { return (node(id).proposed_by & kFillerMask) != 0; }

  // Whether any of these drafters proposed a node. Linear in size().
  bool has_proposed(DrafterMask drafters) const;

  // The child of `parent` with this token, or kNoNode. Linear in size().
  NodeId child(NodeId parent, Token token) const;

  bool is_chain() const;
  std::int32_t max_depth() const;

  // Nodes without children, in index order.
  std::vector<NodeId> leaves() const;

  // From the root to `id`, both included.
  std::vector<NodeId> path_to(NodeId id) const;

  // Keeps the nodes with keep[id] (size() entries; the root always stays) whose parents are kept
  // too, in their order. Returns for each new id the old one. A node below a dropped one is
  // dropped.
  std::vector<NodeId> prune(const std::vector<bool>& keep);

  // Empty when all invariants hold, else what is broken.
  std::string check_integrity() const;

 private:
  std::vector<Node> nodes_;
  std::vector<Claim> claims_;
};

}  // namespace outrider
