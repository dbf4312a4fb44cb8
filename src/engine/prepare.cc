#include <algorithm>

#include "engine/step.h"

namespace outrider {
namespace {

// The widest step that may be planned, if nothing as wide was measured.
constexpr std::int32_t kFirstReach = 16;

}  // namespace

void prepare(Step& step) {
  const Capabilities& caps = step.target.capabilities();
  for (const Part& part : step.parts) step.n_ready += part.ready ? 1 : 0;
  const bool knows = step.planner.knows_costs(step.n_ready);
  const std::int32_t measuring = step.planner.measuring_width(step.n_ready);
  const std::int32_t each = std::min({kMostPlanned, step.planned_width - 1, caps.max_width - 1});
  std::int32_t base = 0;
  std::int32_t most = 0;
  for (Part& part : step.parts) {
    Sequence& s = *part.sequence;
    s.asked = 0;
    const bool is_auto = s.request.width == kAutoWidth;
    const bool may_look = !draws(s.request.rule);
    s.planned = part.ready && knows && may_look && s.wants_drafts() && is_auto;
    const std::int32_t unplanned = may_look ? measuring : Planner::kMeasuringWidth;
    s.width = is_auto ? std::min(unplanned, step.planned_width) : s.request.width;
    base += static_cast<std::int32_t>(part.prefix.size());
    if (part.ready) base += s.planned || !s.wants_drafts() ? 1 : s.width;
    if (s.planned) most += each;
  }
  // Beside a prompt's tokens, which are more than any curve has, as many nodes as without.
  const std::int32_t reach = std::max(step.planner.target_cost().reach(), kFirstReach);
  step.costs.emplace(step.planner.target_cost(), std::max(base, 1), step.n_ready,
                     std::max(0, std::min({caps.n_batch - base, reach - step.n_ready, most})));
}

}  // namespace outrider
