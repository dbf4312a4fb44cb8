#include "engine/request.h"

namespace outrider {

void set_default_branches(DraftShape& shape, AcceptanceRule rule, std::int32_t width) {
  shape.branches = width == kAutoWidth ? kAutoBranches : width;
  if (rule == AcceptanceRule::kBlock) shape.branches = 1;
  shape.model_branches =
      width == kAutoWidth && rule == AcceptanceRule::kCoupled ? kAutoModelBranches : 1;
}

DrafterPlan automatic_drafters(AcceptanceRule rule, bool ngram_files) {
  DrafterPlan plan{.chains = {{"draft-model"}}};
  if (rule != AcceptanceRule::kCoupled) return plan;
  plan.chains.push_back({"suffix"});
  if (ngram_files) plan.chains.push_back({"ngram-cache"});
  return plan;
}

}  // namespace outrider
