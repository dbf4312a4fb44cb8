#include "plan/drafter_account.h"

#include <algorithm>

namespace outrider {
namespace {

// What reading a token takes, in passes, while nothing of it was seen: batches are several times
// quicker than single tokens.
constexpr double kReadPasses = 0.3;
// The same in times of the target's single token, while no pass was seen either. Our kernels read a
// token in 0.15 of that time, and a draft is some five times as quick as its target.
constexpr double kReadTokens = 0.03;
constexpr double kReadMemory = 4096.0;  // tokens that count most

constexpr double kGainMemory = 200.0;
// What an unknown drafter is expected to gain per token of the text, in times of a single token,
// and as how many tokens of the text that counts.
constexpr double kFirstGain = 0.3;
constexpr double kFirstGainTokens = 8.0;
// As how many tokens of the text another run's gain counts at most. A loss counts less, and half as
// much with each run that does not confirm it: else a drafter that lost in one bad run, beside
// another program perhaps, would never read a long text again, and so never show that it is good.
constexpr double kRecalledTokens = 50.0;
constexpr double kRecalledLossTokens = 8.0;
constexpr double kRecalledReading = 512.0;

}  // namespace

void DrafterAccount::note_pass(bool first, std::int32_t sharing, double ms) {
  (first ? first_ : further_).note(sharing, ms);
}

void DrafterAccount::note_reading(std::int64_t tokens, double ms) {
  if (tokens <= 0) return;
  const double n = static_cast<double>(tokens);
  const double fade = std::max(0.0, 1.0 - n / kReadMemory);
  read_tokens_ = read_tokens_ * fade + n;
  read_ms_ = read_ms_ * fade + std::max(ms, 0.0);
}

double DrafterAccount::pass_ms(bool first, std::int32_t sharing) const {
  const CostCurve& curve = first || further_.empty() ? first_ : further_;
  return curve.ms(sharing) / static_cast<double>(std::max(sharing, 1));
}

double DrafterAccount::reading_ms(std::int64_t tokens, double token_ms) const {
  const double each = read_tokens_ > 0.0 ? read_ms_ / read_tokens_
                      : !first_.empty()  ? kReadPasses * pass_ms(true, 1)
                                         : kReadTokens * token_ms;
  return each * static_cast<double>(tokens);
}

void DrafterAccount::note_gain(double expected_ms, double measured_ms, std::int64_t tokens,
                               double token_ms) {
  const double n = static_cast<double>(tokens);
  const double fade = std::max(0.0, 1.0 - n / kGainMemory);
  gained_ms_ = gained_ms_ * fade + expected_ms;
  gained_tokens_ = gained_tokens_ * fade + n;
  expected_balance_ms_ = std::min(expected_balance_ms_ + expected_ms, kMostGained * token_ms);
  measured_balance_ms_ =
      std::min(measured_balance_ms_ + measured_ms, kMostGainedMeasured * token_ms);
  if (expected_balance_ms_ < -kMostLost * token_ms) suspended_by_expected_ = true;
  if (measured_balance_ms_ < -kMostLostMeasured * token_ms) suspended_by_measured_ = true;
  token_ms_ = token_ms;
}

bool DrafterAccount::may_read(std::int64_t unread, std::int64_t to_come, double token_ms) const {
  const double each =
      (gained_ms_ + kFirstGain * token_ms * kFirstGainTokens) / (gained_tokens_ + kFirstGainTokens);
  return reading_ms(unread, token_ms) <= each * static_cast<double>(to_come);
}

std::optional<double> DrafterAccount::begin_exploration(std::int64_t unread, double token_ms) {
  const double expected = pass_ms(true, 1) + reading_ms(unread, token_ms);
  // What was not used for long does not pay for much exploration at once.
  exploration_left_ms_ = std::min(exploration_left_ms_, expected);
  if (expected > exploration_left_ms_ + kExploredAtOnce * token_ms) return std::nullopt;
  exploration_left_ms_ -= expected;
  return expected;
}

void DrafterAccount::end_exploration(double expected_ms, double ms) {
  exploration_left_ms_ += expected_ms - ms;
}

void DrafterAccount::note_step(double ms) {
  exploration_left_ms_ += kAllowance * ms;
  if (suspended_by_expected_) {
    expected_balance_ms_ += kAllowance * ms;
    suspended_by_expected_ = expected_balance_ms_ < 0.0;
  }
  if (suspended_by_measured_) {
    measured_balance_ms_ += kAllowance * ms;
    suspended_by_measured_ = measured_balance_ms_ < -(kMostLostMeasured - kMostLost) * token_ms_;
  }
}

void DrafterAccount::tell(DrafterExperience* experience) const {
  experience->first_passes = first_.points();
  experience->further_passes = further_.points();
  experience->reading_ms = read_tokens_ > 0.0 ? read_ms_ / read_tokens_ : 0.0;
  experience->gained_ms = gained_ms_;
  experience->gained_tokens = gained_tokens_;
}

void DrafterAccount::recall(const DrafterExperience& experience) {
  *this = DrafterAccount();
  first_ = CostCurve(experience.first_passes);
  further_ = CostCurve(experience.further_passes);
  if (experience.reading_ms > 0.0) {
    read_tokens_ = kRecalledReading;
    read_ms_ = experience.reading_ms * kRecalledReading;
  }
  if (experience.gained_tokens > 0.0) {
    gained_tokens_ = experience.gained_ms < 0.0
                         ? std::min(experience.gained_tokens, kRecalledLossTokens) / 2.0
                         : std::min(experience.gained_tokens, kRecalledTokens);
    gained_ms_ = experience.gained_ms * gained_tokens_ / experience.gained_tokens;
  }
}

}  // namespace outrider
