#include "plan/drafter_account.h"

#include <limits>

namespace outrider {
namespace {

// How many times as much the measured balance may lose as the expected one.
constexpr double kMeasuredToExpected = kMeasuredLimits.most_lost / kExpectedLimits.most_lost;

}  // namespace

double DrafterAccount::note_reading(std::int64_t tokens, double ms, const CostCurve& target) {
  if (tokens <= 0) return 0.0;
  const bool has_read = costs_.has_read();
  const double expected_ms = costs_.reading_ms(tokens, target);
  const double counted = costs_.note_reading(tokens, ms, target);
  if (has_read) risk_.correct(counted - expected_ms);
  return counted;
}

void DrafterAccount::note_gain(const DrafterGain& gain) {
  gains_.note_gain(gain);
  risk_.note_gain(gain.measured_ms);
  // What reading has not yet brought back may be lost already.
  const double may_be_lost_ms = kLostOfTime * elapsed_ms_ - risk_.invested_ms();
  measured_.bound_losses(gain.ever_right ? std::numeric_limits<double>::infinity()
                                         : kNeverRightLost);
  expected_.note_gain(gain.expected_ms, may_be_lost_ms, gain.token_ms);
  measured_.note_gain(gain.measured_ms, kMeasuredToExpected * may_be_lost_ms, gain.token_ms);
}

bool DrafterAccount::may_read(const UnreadText& text, const CostCurve& target) const {
  return ReadingRisk::pays(text, reading_ms(text.tokens, target), gains_);
}

bool DrafterAccount::begin_reading(const UnreadText& text, const CostCurve& target) {
  return risk_.begin(text, reading_ms(text.tokens, target), gains_, target.ms(1), elapsed_ms_);
}

void DrafterAccount::give_back_reading(std::int64_t tokens, const CostCurve& target) {
  risk_.give_back(reading_ms(tokens, target));
}

void DrafterAccount::go_on_reading(std::int64_t tokens, const CostCurve& target) {
  risk_.correct(reading_ms(tokens, target));
}

std::optional<double> DrafterAccount::begin_exploration(std::int64_t unread,
                                                        const CostCurve& target, double times) {
  const double expected_ms =
      times * (pass_ms(/*first=*/true, 1, target) + reading_ms(unread, target));
  if (!exploration_.begin(expected_ms, target.ms(1), elapsed_ms_)) return std::nullopt;
  return expected_ms;
}

void DrafterAccount::note_step(double ms) {
  elapsed_ms_ += ms;
  const double allowance_ms = kAllowance * ms;
  expected_.add_allowance(allowance_ms);
  measured_.add_allowance(allowance_ms);
  exploration_.add_allowance(allowance_ms);
}

void DrafterAccount::tell(DrafterExperience* experience) const {
  costs_.tell(experience);
  experience->gained = gains_.numbers();
}

void DrafterAccount::recall(const DrafterExperience& experience) {
  DrafterCosts costs = costs_;
  costs.recall(experience);
  *this = DrafterAccount();
  costs_ = costs;
  gains_.recall(experience.gained);
}

}  // namespace outrider
