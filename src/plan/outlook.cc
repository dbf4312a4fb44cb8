#include "plan/outlook.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace outrider {
namespace {

constexpr double kBetter = 1.0 + 1e-9;       // by more than rounding
constexpr double kSurelyLess = 1.0 - 1e-12;  // whatever was rounded

}  // namespace

StepCosts::StepCosts(const CostCurve& curve, std::int32_t base, std::int32_t n_ready,
                     std::int32_t most, bool reads_again)
    : others_ms_(std::max(0.0, curve.ms(base) - curve.ms(n_ready))), plain_width_(base) {
  const bool has_others = base > n_ready;
  if (!has_others) {
    before_ms_ = curve.rebuild_ms(base);
    behind_ms_ = curve.rebuild_ms();
  }
  const std::size_t n = static_cast<std::size_t>(std::max(most, 0)) + 1;
  ms_.resize(n);
  filled_.resize(n);
  // Of the widths above, the one that takes the least time, of those that were measured: filling up
  // is not for a guess between two of them.
  double least_ms = std::numeric_limits<double>::max();
  std::int32_t least = 0;
  for (std::size_t i = n; i-- > 0;) {
    const std::int32_t nodes = static_cast<std::int32_t>(i);
    // The difference of two estimates may be anything, less than nothing too.
    const double detour_ms = has_others ? 0.0 : curve.detour_ms(base + nodes, base);
    const double measured = curve.ms(base + nodes) - others_ms_ + detour_ms;
    const double own = others_ms_ > 0.0 ? std::max(measured, curve.ms(n_ready)) : measured;
    ms_[i] = std::min(own, least_ms);
    filled_[i] = own <= least_ms ? nodes : least;
    if (reads_again || own > least_ms || curve.noted(base + nodes) == 0) continue;
    least_ms = own;
    least = nodes;
  }
  for (std::size_t i = 0; reads_again && i < n; ++i) {
    const std::int32_t tokens = static_cast<std::int32_t>(i);
    again_ms_.push_back(std::max(0.0, curve.ms(n_ready + tokens) - curve.ms(n_ready)));
  }
}

double StepCosts::took_ms(double ms, std::int32_t width) const {
  return ms - others_ms_ - before_ms_ + (width == plain_width_ ? 0.0 : behind_ms_);
}

Outlook best_outlook(const StepSoFar& step) {
  const StepCosts& costs = *step.costs;
  double tokens = static_cast<double>(step.n_ready);
  Outlook best{.nodes = 0, .tokens = tokens, .ms = costs.ms(0) + step.spent_ms};
  const std::size_t most = static_cast<std::size_t>(costs.most());
  const std::size_t chains = static_cast<std::size_t>(step.n_ready);
  double again_ms = 0.0;
  double bar = best.rate() * (step.n_ready > 1 ? kSharedBetter : kBetter);
  for (std::size_t i = 0; i < std::min(step.chances.size(), most); ++i) {
    tokens += static_cast<double>(step.chances[i]);
    const std::int32_t nodes = static_cast<std::int32_t>(i) + 1;
    if (costs.reads_again()) {
      const double before = i < chains ? 1.0 : static_cast<double>(step.chances[i - chains]);
      again_ms += (before - static_cast<double>(step.chances[i])) *
                  costs.again_ms(static_cast<std::int32_t>(i / chains) + 1);
    }
    const double ms = costs.ms(nodes) + step.spent_ms + again_ms;
    // Most sizes are far from better: that takes no division to see.
    if (tokens < bar * ms * kSurelyLess) continue;
    const Outlook with{.nodes = nodes, .tokens = tokens, .ms = ms};
    if (with.rate() <= bar) continue;
    best = with;
    bar = best.rate() * kBetter;
  }
  return best;
}

bool more_guesses_pay(const Prospect& prospect, StepSoFar step) {
  const double now = best_outlook(step).rate();
  // More than may be sent are not looked at.
  const std::size_t most = static_cast<std::size_t>(step.costs->most());
  const std::span<const float> useful = step.chances.first(std::min(step.chances.size(), most));
  std::vector<float> with;
  with.reserve(useful.size() + static_cast<std::size_t>(kFurthest));
  with.assign(useful.begin(), useful.end());
  double chance = static_cast<double>(prospect.tip_chance);
  for (std::int32_t i = 0; i < kFurthest; ++i) {
    chance *= prospect.prediction(i);
    // Only one token can be right, and what others said already is not worth saying again.
    const double open = prospect.covered ? std::max(0.0, 1.0 - prospect.covered(i)) : 1.0;
    const float guess = static_cast<float>(chance * open);
    with.insert(std::upper_bound(with.begin(), with.end(), guess, std::greater<float>()), guess);
    step.chances = with;
    if (i == 0 || !prospect.at_once) step.spent_ms += prospect.pass_ms;
    if (best_outlook(step).rate() > now * kBetter) return true;
  }
  return false;
}

}  // namespace outrider
