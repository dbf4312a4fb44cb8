#include <algorithm>

#include "engine/step.h"
#include "engine/step_width.h"

namespace outrider {
namespace {

// The widest step, of all sequences, that may be planned if nothing as wide was measured.
constexpr std::int32_t kFirstReach = 16;

// What such a target has not seen takes a pass of its own in front of a chain. Without guesses it
// is read beside the root, and the pass gives a token; the same guesses come one step later.
bool only_reads_up(const Part& part, const Capabilities& caps) {
  return caps.rollback == Rollback::kSaved && !part.prefix.empty();
}

}  // namespace

void prepare(Step& step) {
  const Capabilities& caps = step.target.capabilities();
  for (const Part& part : step.parts) step.n_ready += part.ready ? 1 : 0;
  const bool knows = step.planner.knows_costs(step.n_ready);
  const std::int32_t measuring = step.planner.measuring_width(step.n_ready);
  std::int32_t base = 0;  // in the batch whatever the planner chooses
  std::int32_t most = 0;  // nodes that it may choose beside
  for (Part& part : step.parts) {
    Sequence& s = *part.sequence;
    s.asked = 0;
    const bool is_auto = s.request.width == kAutoWidth;
    const bool may_look = !draws(s.request.rule);
    s.planned = part.ready && knows && may_look && s.wants_drafts() && is_auto;
    std::int32_t chosen = step.planned_width;
    if (!s.planned) chosen = std::min(chosen, may_look ? measuring : Planner::kMeasuringWidth);
    if (is_auto && may_look && only_reads_up(part, caps)) chosen = 1;
    s.width = width_of(s.request, chosen, caps);
    step.n_prefix += static_cast<std::int32_t>(part.prefix.size());
    if (part.ready) base += s.planned || !s.wants_drafts() ? 1 : s.width;
    if (s.planned) most += std::min(kMostPlanned, s.width - 1);
  }
  base += step.n_prefix;
  // Beside a prompt's tokens, which are more than any curve has, as many nodes as without.
  const std::int32_t reach = std::max(step.planner.target_cost().reach(), kFirstReach);
  step.costs.emplace(step.planner.target_cost(), std::max(base, 1), step.n_ready,
                     std::max(0, std::min({caps.n_batch - base, reach - step.n_ready, most})),
                     /*reads_again=*/caps.rollback == Rollback::kSaved);
}

}  // namespace outrider
