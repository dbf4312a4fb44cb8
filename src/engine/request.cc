#include "engine/request.h"

namespace outrider {

std::int32_t default_branches(const DrafterPlan& plan, AcceptanceRule rule, std::int32_t width) {
  if (width == kAutoWidth) width = kAutoBranches;
  const bool costs_passes = plan.empty() || plan.mentions(kDraftModelName);
  return costs_passes || rule == AcceptanceRule::kBlock ? 1 : width;
}

}  // namespace outrider
