#include "engine/request.h"

namespace outrider {

void set_default_branches(DraftShape& shape, AcceptanceRule rule, std::int32_t width) {
  shape.branches = width == kAutoWidth ? kAutoBranches : width;
  if (rule == AcceptanceRule::kBlock) shape.branches = 1;
  shape.model_branches =
      width == kAutoWidth && rule == AcceptanceRule::kCoupled ? kAutoModelBranches : 1;
}

void fill_branches(DraftShape& shape, AcceptanceRule rule, std::int32_t width) {
  if (shape.branches == kBranchesByWidth) set_default_branches(shape, rule, width);
}

Status check_branches(AcceptanceRule rule, const DraftShape& shape) {
  if (rule != AcceptanceRule::kBlock || shape.branches <= 1) return Status();
  return wrong_value("branches", std::to_string(shape.branches),
                     "1 with rule=block, which judges chains");
}

DrafterPlan automatic_drafters(AcceptanceRule rule, bool ngram_files) {
  DrafterPlan plan{.chains = {{"draft-model"}}};
  if (rule != AcceptanceRule::kCoupled) return plan;
  plan.chains.push_back({"suffix"});
  if (ngram_files) plan.chains.push_back({"ngram-cache"});
  return plan;
}

}  // namespace outrider
