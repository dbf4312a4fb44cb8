// Which proposed nodes the target checks, while widths are set by hand.
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

// Prunes the trees. Roots are always kept, also when they alone exceed `budget`. Among equally
// likely nodes the one nearer its root stays, then the earlier request's.
void plan_widths(std::span<WidthRequest> requests, std::int32_t budget);

}  // namespace outrider
