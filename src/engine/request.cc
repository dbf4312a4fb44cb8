#include "engine/request.h"

namespace outrider {

void set_default_branches(DraftShape& shape, AcceptanceRule rule, std::int32_t width) {
  shape.branches = width == kAutoWidth ? kAutoBranches : width;
  if (rule == AcceptanceRule::kBlock) shape.branches = 1;
  shape.model_branches = 1;
}

DrafterPlan automatic_drafters(AcceptanceRule rule, bool ngram_files) {
  std::vector<std::string> names = {"draft-model", "suffix"};
  if (ngram_files) names.push_back("ngram-cache");
  if (rule != AcceptanceRule::kCoupled) return {.chains = {std::move(names)}};
  DrafterPlan plan;
  for (std::string& name : names) plan.chains.push_back({std::move(name)});
  return plan;
}

}  // namespace outrider
