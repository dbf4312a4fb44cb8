#include "engine/step_width.h"

#include <algorithm>

#include "plan/cost_curve.h"

namespace outrider {

std::int32_t planned_width(const Exactness& exactness) {
  // Where not even two tokens are exact there is nothing to keep to.
  const bool limited = exactness.kind != Exactness::Kind::kExact && exactness.width > 1;
  return limited ? exactness.width : CostCurve::kMaxWidth;
}

std::int32_t width_of(const Request& request, std::int32_t chosen, const Capabilities& target) {
  return std::min(request.width == kAutoWidth ? chosen : request.width, target.max_width);
}

}  // namespace outrider
