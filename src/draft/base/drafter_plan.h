// DrafterPlan: which drafters guess for a request, and how they go together.
//
//   a,b    both propose; what they say is merged into one tree
//   a/b    a fall-back chain: b is asked only where a has found nothing, so that one of them alone
//          has the credit
//   a/b,c  the chain's winner and c, merged
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tree/token_tree.h"

namespace outrider {

struct DrafterPlan {
  // Drafters' names; in a chain the first that finds something proposes. Empty: every drafter that
  // is there, merged.
  std::vector<std::vector<std::string>> chains;

  bool empty() const { return chains.empty(); }
  bool mentions(std::string_view name) const;
};

// Errors: kInvalidArgument, about `field`, for an expression with an empty part, a name twice, or
// one that is not among `known`.
Result<DrafterPlan> parse_drafter_plan(std::string_view expression,
                                       std::span<const std::string_view> known,
                                       std::string_view field = "drafter");

// Whether a chain, as indices of drafters, asks this one at this stage: it is the chain's next, and
// those before it have found nothing.
bool asks_at(std::span<const std::size_t> chain, std::size_t stage, std::size_t drafter,
             const TokenTree& proposed);

// The expression.
std::string to_string(const DrafterPlan& plan);

}  // namespace outrider
