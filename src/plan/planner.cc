#include "plan/planner.h"

#include <algorithm>

namespace outrider {
namespace {

// Plain passes to see before wider ones are measured.
constexpr std::int64_t kPlainPasses = 2;
constexpr double kTextMemory = 12.0;

}  // namespace

bool Planner::knows_costs(std::int32_t n_ready) const {
  return target_.compares_widths() && target_.smallest() <= n_ready;
}

std::int32_t Planner::measuring_width(std::int32_t n_ready) const {
  const bool plain_seen = target_.passes_noted() >= kPlainPasses && target_.smallest() <= n_ready;
  return plain_seen ? kMeasuringWidth : 1;
}

bool Planner::another_pass_pays(const NextGuess& guess, const RequestPlan& plan,
                                const StepSoFar& step) const {
  const std::size_t drafter = guess.drafter;
  Prospect prospect;
  prospect.tip_chance = guess.tip_chance;
  prospect.pass_ms = pass_ms(drafter, guess.tip_depth == 0, guess.sharing);
  prospect.at_once = accounts_[drafter].at_once();
  // The upper predictions are for exploration. Once there is a first guess, its own chance says
  // more.
  const bool optimistic = guess.optimistic && guess.tip_depth == 0;
  prospect.prediction = [&](std::int32_t i) {
    const std::int32_t depth = guess.tip_depth + 1 + i;
    return plan.bias.shifted(drafter, optimistic ? acceptance_.upper_prediction(drafter, depth)
                                                 : acceptance_.prediction(drafter, depth));
  };
  prospect.covered = [&](std::int32_t i) {
    const std::size_t depth = static_cast<std::size_t>(guess.tip_depth + 1 + i);
    return depth < guess.covered.size() ? static_cast<double>(guess.covered[depth]) : 0.0;
  };
  return more_guesses_pay(prospect, step);
}

// With guesses that may be wrong a step is less, so what does not pay here pays nowhere. Requests
// are doubled, so that a few of them that fill a tile are looked at, too.
bool Planner::sure_guesses_pay(std::size_t drafter, std::int32_t n_ready,
                               const StepCosts& costs) const {
  if (!accounts_[drafter].was_seen()) return true;
  const double least_rate = (n_ready > 1 ? kSharedBetter : 1.0) * n_ready / costs.ms(0);
  for (std::int32_t n = 1;; n = std::min(2 * n, n_ready)) {
    const double first_ms = n * pass_ms(drafter, /*first=*/true, n);
    const double further_ms = n * pass_ms(drafter, /*first=*/false, n);
    for (std::int32_t depth = 1; depth <= kFurthest && n * depth <= costs.most(); ++depth) {
      const double ms = costs.ms(n * depth) + first_ms + (depth - 1) * further_ms;
      if (n_ready + n * depth > least_rate * ms) return true;
    }
    if (n == n_ready) return false;
  }
}

double Planner::expected_share(std::size_t drafter, std::int32_t n_ready) const {
  const double n = static_cast<double>(n_ready);
  const double plain_ms = target_.ms(n_ready) / n;
  double best_ms = plain_ms;  // a token
  double chance = 1.0;
  double tokens = 1.0;
  double passes_ms = 0.0;
  for (std::int32_t depth = 1; depth <= kFurthest; ++depth) {
    chance *= n_ready == 1 ? acceptance_.upper_prediction(drafter, depth)
                           : acceptance_.prediction(drafter, depth);
    tokens += chance;
    passes_ms += pass_ms(drafter, depth == 1, n_ready);
    const double ms = (target_.ms(n_ready * (1 + depth)) + target_.rebuild_ms()) / n + passes_ms;
    best_ms = std::min(best_ms, ms / tokens);
  }
  return plain_ms > 0.0 ? 1.0 - best_ms / plain_ms : 0.0;
}

UnreadText Planner::unread_text(std::size_t drafter, std::int64_t unread, std::int64_t remaining,
                                std::int32_t n_ready, bool drawn) const {
  return {.tokens = unread,
          .to_come = expected_tokens(remaining),
          .n_ready = n_ready,
          .drawn = drawn,
          .worth_ms = target_.ms(n_ready) / static_cast<double>(n_ready),
          .expected_share = expected_share(drafter, n_ready)};
}

void Planner::note_text(std::int64_t tokens, bool at_limit) {
  constexpr double kFade = 1.0 - 1.0 / kTextMemory;
  texts_ = texts_ * kFade + (at_limit ? 0.0 : 1.0);
  texts_tokens_ = texts_tokens_ * kFade + static_cast<double>(tokens);
}

std::int64_t Planner::expected_tokens(std::int64_t remaining) const {
  const double most = static_cast<double>(remaining);
  return texts_tokens_ < most * texts_ ? static_cast<std::int64_t>(texts_tokens_ / texts_)
                                       : remaining;
}

void Planner::note_step(double ms) {
  ++steps_noted_;
  for (DrafterAccount& account : accounts_) account.note_step(ms);
}

void Planner::forget(std::size_t drafter) {
  accounts_[drafter] = DrafterAccount();
  acceptance_.forget(drafter);
}

DrafterExperience Planner::experience(std::size_t drafter) const {
  DrafterExperience experience;
  experience.acceptance = acceptance_.numbers(drafter);
  accounts_[drafter].tell(&experience);
  return experience;
}

void Planner::recall(std::size_t drafter, const DrafterExperience& experience) {
  if (!acceptance_.recall(drafter, experience.acceptance)) return;
  accounts_[drafter].recall(experience);
}

void Planner::learn(const TokenTree& proposed, std::span<const Token> emitted, DrafterMask asked,
                    RequestPlan& plan) {
  learn_from(proposed, emitted, asked, acceptance_, plan.bias, &score_);
}

}  // namespace outrider
