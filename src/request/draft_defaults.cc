#include "request/draft_defaults.h"

#include <algorithm>
#include <string>

#include "base/request_limits.h"
#include "draft/drafter_table.h"

namespace outrider {

void set_default_branches(DraftShape& shape, AcceptanceRule rule, std::int32_t width) {
  shape.branches = width == kAutoWidth ? kAutoBranches : width;
  if (judges_chains_only(rule)) shape.branches = 1;
  shape.model_branches = width == kAutoWidth && !draws(rule) ? kAutoModelBranches : 1;
}

void fill_branches(DraftShape& shape, AcceptanceRule rule, std::int32_t width) {
  if (shape.branches == kBranchesByWidth) set_default_branches(shape, rule, width);
}

DrafterPlan automatic_drafters(AcceptanceRule rule, std::span<const std::string_view> with_files) {
  // One of them is there at most.
  DrafterPlan plan;
  const auto add_all = [&plan](NeededModel model) {
    for (const DrafterKind& kind : drafter_kinds()) {
      if (kind.model == model) plan.chains.push_back({std::string(kind.name)});
    }
  };
  add_all(NeededModel::kDraft);
  if (draws(rule)) return plan;
  add_all(NeededModel::kTarget);
  for (const LookupKind* kind : lookup_kinds()) {
    const bool has_files =
        std::find(with_files.begin(), with_files.end(), kind->name) != with_files.end();
    const bool guesses =
        kind->unasked == Unasked::kAlways || (kind->unasked == Unasked::kWithFiles && has_files);
    if (guesses) plan.chains.push_back({std::string(kind->name)});
  }
  return plan;
}

}  // namespace outrider
