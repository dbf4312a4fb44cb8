#include "plan/outlook.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace outrider {
namespace {

constexpr double kBetter = 1.0 + 1e-9;  // by more than rounding

}  // namespace

StepCosts::StepCosts(const CostCurve& curve, std::int32_t base, std::int32_t n_ready,
                     std::int32_t most)
    : others_ms_(std::max(0.0, curve.ms(base) - curve.ms(n_ready))) {
  const std::size_t n = static_cast<std::size_t>(std::max(most, 0)) + 1;
  ms_.resize(n);
  filled_.resize(n);
  // Of the widths above, the one that takes the least time, of those that were measured: filling up
  // is not for a guess between two of them.
  double least_ms = std::numeric_limits<double>::max();
  std::int32_t least = 0;
  for (std::size_t i = n; i-- > 0;) {
    const std::int32_t nodes = static_cast<std::int32_t>(i);
    const double own = curve.ms(base + nodes) - others_ms_;
    ms_[i] = std::min(own, least_ms);
    filled_[i] = own <= least_ms ? nodes : least;
    if (own > least_ms || curve.noted(base + nodes) == 0) continue;
    least_ms = own;
    least = nodes;
  }
}

Outlook best_outlook(std::span<const float> chances, std::int32_t n_ready, const StepCosts& costs,
                     double spent_ms) {
  double tokens = static_cast<double>(n_ready);
  Outlook best{.nodes = 0, .tokens = tokens, .ms = costs.ms(0) + spent_ms};
  const std::size_t most = static_cast<std::size_t>(costs.most());
  for (std::size_t i = 0; i < std::min(chances.size(), most); ++i) {
    tokens += static_cast<double>(chances[i]);
    const Outlook with{.nodes = static_cast<std::int32_t>(i) + 1,
                       .tokens = tokens,
                       .ms = costs.ms(static_cast<std::int32_t>(i) + 1) + spent_ms};
    if (with.rate() > best.rate() * kBetter) best = with;
  }
  return best;
}

bool more_guesses_pay(const Prospect& prospect, std::span<const float> chances,
                      std::int32_t n_ready, const StepCosts& costs, double spent_ms) {
  const double now = best_outlook(chances, n_ready, costs, spent_ms).rate();
  std::vector<float> with(chances.begin(), chances.end());
  double chance = static_cast<double>(prospect.tip_chance);
  for (std::int32_t i = 0; i < kFurthest; ++i) {
    chance *= prospect.promise(i);
    // Only one token can be right, and what others said already is not worth saying again.
    const double open = prospect.covered ? std::max(0.0, 1.0 - prospect.covered(i)) : 1.0;
    const float guess = static_cast<float>(chance * open);
    with.insert(std::upper_bound(with.begin(), with.end(), guess, std::greater<float>()), guess);
    spent_ms += prospect.pass_ms;
    if (best_outlook(with, n_ready, costs, spent_ms).rate() > now * kBetter) return true;
  }
  return false;
}

}  // namespace outrider
