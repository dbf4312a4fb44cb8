// TreeChances: the chance of each node of a tree, kept up to date while the tree grows.
//
// Idea. The planner is asked before each pass of a drafter, when the tree has a node or two more
// than at the question before. Most chances are then as they were. So only what the new nodes and
// claims are about is computed anew:
//   - a node with a new claim, and the children of such a node (how sure a drafter is of a child is
//     its claim on the child divided by its claim on the parent);
//   - the siblings of these, where they share one token's chance;
//   - what lies below a node whose chance has changed.
//
// Rules. A node that several drafters claim has the best of their chances. Siblings share at most
// one token's chance: the likeliest gets its chance in full, then the next, until 1 is used up. A
// node's chance is that of its parent times its own share. There are no rules for drawn nodes
// (dist/draws.h): the planner does not choose for requests whose acceptance rule needs draws
// (engine/prepare.cc).
//
// Example. The root has a child of 0.7. One of 0.6 joins it: it gets 0.3, and the first stays as it
// is. With 0.8 instead it would get 0.8, and the first 0.2, and all below the first would shrink.
//
// Cost: proportional to what changed, plus one comparison for each node. Tested by
// tree_chances_test.cc against the rules written down plainly, after each addition.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/acceptance_table.h"
#include "plan/node_claims.h"
#include "tree/token_tree.h"

namespace outrider {

// Chances of the nodes of several trees together, in falling order.
class FallingChances {
 public:
  void insert(float chance);
  // REQUIRES: `before` is there.
  void replace(float before, float after);
  std::span<const float> values() const { return values_; }

 private:
  std::vector<float> values_;
};

class TreeChances {
 public:
  // Another tree begins.
  void clear();

  // Brings the chances up to date with the tree. `falling`, if not null, gets what is new and
  // changes with what changes. REQUIRES, since clear(): the same tree, only grown; the same
  // `falling`; nothing was learned by the table or the bias.
  void update(const TokenTree& tree, const AcceptanceTable& table, const AcceptanceBias& bias,
              FallingChances* falling = nullptr);

  // [nodes], as of the last update; empty behind clear(). The root's is 1, a filler's 0. No node's
  // is above its parent's.
  std::span<const float> values() const { return values_; }

  const NodeClaims& claims() const { return claims_; }

 private:
  struct Node {
    NodeId parent = kNoNode;
    NodeId first_child = kNoNode;
    NodeId last_child = kNoNode;
    NodeId next_sibling = kNoNode;
    double own = 0.0;     // chance given that the parent is right, without regard to siblings
    double share = -1.0;  // the same, with regard to them; less than 0: not known yet
    // What is to be computed anew: `own`; the shares of the children; the chance.
    bool own_changed = true;
    bool children_changed = false;
    bool chance_changed = false;
  };

  void add_nodes(const TokenTree& tree);
  void note_claims(const TokenTree& tree);
  void note_children(NodeId parent);
  void compute_own(const TokenTree& tree, const AcceptanceTable& table, const AcceptanceBias& bias);
  void share_out(NodeId parent);
  void compute_chances(FallingChances* falling);
  Node& node(NodeId id) { return nodes_[static_cast<std::size_t>(id)]; }
  void changed_from(NodeId id) { first_changed_ = id < first_changed_ ? id : first_changed_; }

  NodeClaims claims_;
  std::vector<Node> nodes_;
  std::vector<float> values_;     // [nodes_]
  std::size_t n_claims_ = 0;      // of the tree's, that were looked at
  NodeId first_changed_ = 0;      // no node before it is to be computed anew
  std::vector<NodeId> siblings_;  // scratch
};

}  // namespace outrider
