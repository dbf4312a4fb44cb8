#include "engine/request.h"

namespace outrider {

Exactness exactness_of(const SpeculationStats& stats, const Exactness& target) {
  // Where a drafter was lost half-way, what was sent before was judged by the rule.
  const bool used = stats.enabled || stats.drafted > 0;
  if (!used || keeps_text(stats.rule)) return target;
  return {.kind = Exactness::Kind::kDistributional,
          .width = 1,
          .coverage = target.coverage,
          .reason = "the rule " + std::string(traits_of(stats.rule).name) +
                    " keeps the distribution, not the text of plain decoding"};
}

}  // namespace outrider
