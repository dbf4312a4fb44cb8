// NodeClaims: what drafters said of a tree's nodes, sorted by node, as guesses whose chance can be
// looked up (plan/acceptance_table.h).
//
// A drafter's claim on a node is about the whole path to it: a product of how sure the drafter is
// of each guess. Divided by its claim on the parent it is about the last guess alone.
//
// Claims on fillers are left out. Cost: O(1) for each claim. Tested by calibrate_test.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/acceptance_table.h"
#include "tree/token_tree.h"

namespace outrider {

class NodeClaims {
 public:
  void clear();

  // Takes in what the tree's drafters have said since the last call. REQUIRES: the tree is the one
  // of that call, grown or not.
  void update(const TokenTree& tree);

  // Calls visit(const Claim&) for each claim on `node`, in the order in which they were made.
  template <typename Visit>
  void for_each(NodeId node, Visit&& visit) const {
    for (std::int32_t i = lists_[static_cast<std::size_t>(node)].first; i != kEnd;) {
      const Entry& entry = entries_[static_cast<std::size_t>(i)];
      visit(entry.claim);
      i = entry.next;
    }
  }
  bool any(NodeId node) const { return lists_[static_cast<std::size_t>(node)].first != kEnd; }

  // How sure the drafter is of the node, given its parent.
  GuessClaim guess(const TokenTree& tree, const Claim& claim) const;

 private:
  static constexpr std::int32_t kEnd = -1;
  struct List {  // of one node's claims, as indices of entries_
    std::int32_t first = kEnd;
    std::int32_t last = kEnd;
  };
  struct Entry {
    Claim claim;
    std::int32_t next = kEnd;  // of the same node
  };

  std::vector<List> lists_;  // [nodes]
  std::vector<Entry> entries_;
  std::size_t n_read_ = 0;  // of the tree's claims
};

}  // namespace outrider
