// Which proposed nodes the target checks.
//
// Each sequence may send at most `max_width` nodes, its root included, with at most `max_leaves`
// leaves, and all together at most `budget`. The likeliest nodes stay. Since a child is never
// likelier than its parent (TokenTree, invariant 4), the best n nodes by falling chance always form
// a tree.
//
// Tested by width_plan_test.cc against all subsets of small trees.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tree/token_tree.h"

namespace outrider {

struct WidthRequest {
  TokenTree* tree = nullptr;   // in: what is proposed; out: what is sent
  std::int32_t max_width = 1;  // at least 1
  std::int32_t max_leaves = std::numeric_limits<std::int32_t>::max();  // at least 1
};

// A node that may be sent.
struct RankedNode {
  std::size_t request = 0;
  NodeId node = kNoNode;
  float chance = 0.0f;
};

// All that could be sent, best first: each prefix of the list is, with the roots, a set of trees
// that keeps every limit. Roots are not in it. Among equally likely nodes the one nearer its root
// comes first, then the earlier request's. `budget`: nodes and roots together.
std::vector<RankedNode> rank_nodes(std::span<const WidthRequest> requests, std::int32_t budget);

// Prunes the trees to their roots and these nodes.
void keep_ranked(std::span<WidthRequest> requests, std::span<const RankedNode> nodes);

// Prunes the trees to all that may be sent. Roots are always kept, also when they alone exceed
// `budget`.
void plan_widths(std::span<WidthRequest> requests, std::int32_t budget);

}  // namespace outrider
