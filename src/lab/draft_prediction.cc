#include "lab/draft_prediction.h"

#include <vector>

#include "plan/outlook.h"

namespace outrider::lab {

DraftPrediction predict_draft(const CostCurve& target, std::span<const double> chances,
                              double first_ms, double further_ms, bool reads_again) {
  const StepCosts costs(target, /*base=*/1, /*n_ready=*/1,
                        static_cast<std::int32_t>(chances.size()), reads_again);
  const double plain_rate = 1.0 / target.ms(1);
  DraftPrediction best;
  std::vector<float> of_nodes;
  double chance = 1.0;
  double tokens = 1.0;
  double spent_ms = 0.0;
  double again_ms = 0.0;
  for (const double next : chances) {
    const double before = chance;
    chance *= next;
    tokens += chance;
    spent_ms += of_nodes.empty() ? first_ms : further_ms;
    of_nodes.push_back(static_cast<float>(chance));
    const std::int32_t n = static_cast<std::int32_t>(of_nodes.size());
    // All that was guessed is sent: what is sent of it is at least as good.
    const Outlook outlook =
        best_outlook({.chances = of_nodes, .n_ready = 1, .costs = &costs, .spent_ms = spent_ms});
    again_ms += (before - chance) * costs.again_ms(n);
    const double ms = outlook.nodes > 0 ? outlook.ms : costs.ms(n) + spent_ms + again_ms;
    const double said = outlook.nodes > 0 ? outlook.tokens : tokens;
    const std::size_t last = static_cast<std::size_t>(outlook.nodes > 0 ? outlook.nodes : n) - 1;
    const double plain = reads_again ? 1.0 - static_cast<double>(of_nodes[last]) : 0.0;
    const double speedup = (said + plain) / (ms + plain * target.ms(1)) / plain_rate;
    if (best.guesses > 0 && speedup <= best.speedup) continue;
    best = {.guesses = n, .tokens = said, .ms = ms, .speedup = speedup};
  }
  return best;
}

}  // namespace outrider::lab
