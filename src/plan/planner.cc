#include "plan/planner.h"

#include <algorithm>

namespace outrider {
namespace {

// Passes of the trial width to see before widths are chosen.
constexpr std::int64_t kTrialPasses = 2;
// What trials of a drafter may take at once, in single tokens of the target: eight guesses of a
// draft model that takes 0.3 of it.
constexpr double kAtOnce = 2.5;
// What reading a missed token takes, in passes: batches are several times quicker than single
// tokens. Only decides when a trial is made; what it takes is counted as it was.
constexpr double kMissedTokenPasses = 0.3;

}  // namespace

bool Planner::knows_costs() const { return target_.noted(1) > 0 && target_.widths_noted() > 1; }

std::int32_t Planner::trial_width() const {
  return target_.passes_noted() < kTrialPasses ? 1 : kTrialWidth;
}

// Of a pass that nobody has seen yet, nothing is expected: it is found out at once.
double Planner::pass_ms(std::size_t drafter, bool first, std::int32_t sharing) const {
  const DrafterCosts& costs = drafters_[drafter];
  const CostCurve& curve = first || costs.further.empty() ? costs.first : costs.further;
  return curve.ms(sharing) / static_cast<double>(std::max(sharing, 1));
}

bool Planner::another_pass_pays(std::size_t drafter, const RequestPlan& plan, float tip_chance,
                                std::int32_t tip_depth, std::int32_t sharing, bool hopeful,
                                std::span<const float> chances, std::int32_t n_ready,
                                const StepCosts& costs, double spent_ms) const {
  Prospect prospect;
  prospect.tip_chance = tip_chance;
  prospect.pass_ms = pass_ms(drafter, tip_depth == 0, sharing);
  prospect.promise = [&](std::int32_t i) {
    const std::int32_t depth = tip_depth + 1 + i;
    return plan.bias.shifted(
        drafter, hopeful ? acceptance_.hope(drafter, depth) : acceptance_.promise(drafter, depth));
  };
  return more_guesses_pay(prospect, chances, n_ready, costs, spent_ms);
}

double Planner::trial_ms(std::size_t drafter, std::int64_t missed) const {
  return pass_ms(drafter, true, 1) * (1.0 + kMissedTokenPasses * static_cast<double>(missed));
}

bool Planner::take_trial(std::size_t drafter, std::int64_t missed) {
  double& balance = drafters_[drafter].trials_ms;
  const double expected = trial_ms(drafter, missed);
  balance =
      std::min(balance, expected);  // what was not used for long is not for many trials in turn
  if (expected > balance + kAtOnce * target_.ms(1)) return false;
  balance -= expected;
  return true;
}

void Planner::note_pass(std::size_t drafter, bool first, std::int32_t sharing, double ms) {
  DrafterCosts& costs = drafters_[drafter];
  (first ? costs.first : costs.further).note(sharing, ms);
}

void Planner::note_trial(std::size_t drafter, std::int64_t missed, double ms) {
  drafters_[drafter].trials_ms += trial_ms(drafter, missed) - ms;
}

void Planner::note_step(double ms) {
  for (DrafterCosts& costs : drafters_) costs.trials_ms += kTrialShare * ms;
}

void Planner::forget(std::size_t drafter) {
  drafters_[drafter] = DrafterCosts();
  acceptance_.forget(drafter);
}

void Planner::learn(const TokenTree& proposed, std::span<const Token> emitted, DrafterMask asked,
                    RequestPlan& plan) {
  learn_from(proposed, emitted, asked, acceptance_, plan.bias, &score_);
}

}  // namespace outrider
