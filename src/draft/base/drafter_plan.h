// DrafterPlan: which drafters guess for a request, and how they go together.
//
//   a,b    both propose; what they say is merged into one tree
//   a/b    a fall-back chain: b is asked only where a has found nothing, so that one of them alone
//          has the credit
//   a/b,c  the chain's winner and c, merged
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tree/token_tree.h"

namespace outrider {

// The draft model's, as a drafter. Those that need no model are in a table (draft/lookup_table.h).
inline constexpr std::string_view kDraftModelName = "draft-model";

// The prediction layers of the target's own file.
inline constexpr std::string_view kMtpName = "mtp";

// Trained heads in files of their own, which are drafts. Each is called as GGUF files call its
// architecture. DFlash: a head that guesses a block of tokens in one pass.
inline constexpr std::string_view kEagle3Name = "eagle3";
inline constexpr std::string_view kDflashName = "dflash";
inline constexpr std::array kHeadNames = {kEagle3Name, kDflashName};

// What a draft is called whose file has this architecture.
std::string_view draft_name(std::string_view architecture);

// Whether a draft may be called so: kDraftModelName, or one of kHeadNames.
bool is_draft_name(std::string_view name);

struct DrafterPlan {
  // Drafters' names; in a chain the first that finds something proposes. Empty: every drafter that
  // is there, merged.
  std::vector<std::vector<std::string>> chains;

  bool empty() const { return chains.empty(); }
  bool mentions(std::string_view name) const;
};

// Whether it asks a draft, whatever it is called.
bool mentions_draft(const DrafterPlan& plan);

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
