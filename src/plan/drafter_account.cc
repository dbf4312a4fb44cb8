#include "plan/drafter_account.h"

#include <algorithm>
#include <limits>

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
// As how many tokens of the text what is expected counts.
constexpr double kFirstGainTokens = 8.0;
// Behind so many tokens, what was gained is known well enough to read for it.
constexpr double kProvenTokens = 16.0;
// What reading takes is certain, and what was gained lately tends to be more than what will be.
constexpr double kReadingMargin = 1.3;
// What is expected to gain more than so many times its cost may risk in proportion more, up to
// kMostRatio times.
constexpr double kGoodRatio = 4.0;
constexpr double kMostRatio = 3.0;
constexpr double kMostRisked = 100.0;  // at once, in times of a single token
// As how many tokens of the text another run's gain counts at most. A loss counts less, and half as
// much with each run that does not confirm it: else a drafter that lost in one bad run, beside
// another program perhaps, would never read a long text again, and so never show that it is good.
constexpr double kRecalledTokens = 50.0;
constexpr double kRecalledLossTokens = 8.0;
// One reading of a text that follows outweighs what another run measured.
constexpr double kRecalledReading = 128.0;
// A pass that takes more than so many times what was expected was held up by something else.
constexpr double kMostOff = 3.0;
// The same where only sizes are known.
constexpr double kMostOffUnseen = 8.0;
// However little was expected, this is credible, in times of a single token: it loses little.
constexpr double kLeastHeldUp = 0.25;

// What is credible where `most_ms` is by what is known of the drafter. All is, where nothing is
// known of the target.
double credible_ms(double most_ms, const CostCurve& target) {
  if (target.empty()) return std::numeric_limits<double>::infinity();
  return std::max(most_ms, kLeastHeldUp * target.ms(1));
}

}  // namespace

double DrafterAccount::most_pass_ms(bool first, std::int32_t sharing,
                                    const CostCurve& target) const {
  const std::int32_t n = std::max(sharing, 1);
  const double expected_ms = pass_ms(first, n, target) * n;
  const bool unseen = first_.empty();
  // Of one that nothing is known of: as long as the target's own.
  if (unseen && expected_share_ <= 0.0) return credible_ms(target.ms(n), target);
  return credible_ms((unseen ? kMostOffUnseen : kMostOff) * expected_ms, target);
}

double DrafterAccount::note_pass(bool first, std::int32_t sharing, double ms,
                                 const CostCurve& target) {
  const double counted = held_up_pass_.counted(ms, most_pass_ms(first, sharing, target));
  (first ? first_ : further_).note(sharing, counted);
  return counted;
}

double DrafterAccount::note_reading(std::int64_t tokens, double ms, const CostCurve& target) {
  if (tokens <= 0) return 0.0;
  const double n = static_cast<double>(tokens);
  const double expected_ms = reading_ms(tokens, target);
  const double most_off = read_tokens_ > 0.0 ? kMostOff : kMostOffUnseen;
  const double counted =
      held_up_reading_.counted(std::max(ms, 0.0), credible_ms(most_off * expected_ms, target));
  const double fade = std::max(0.0, 1.0 - n / kReadMemory);
  if (read_tokens_ > 0.0) invested_ms_ += counted - expected_ms;
  read_tokens_ = read_tokens_ * fade + n;
  read_ms_ = read_ms_ * fade + counted;
  return counted;
}

double DrafterAccount::pass_ms(bool first, std::int32_t sharing, const CostCurve& target) const {
  if (!first && at_once_) return 0.0;
  const CostCurve& seen = first || further_.empty() ? first_ : further_;
  const double n = static_cast<double>(std::max(sharing, 1));
  if (seen.empty()) return expected_share_ * target.ms(sharing) / n;
  const double widest_ms = target.ms(seen.largest());
  if (sharing <= seen.largest() || widest_ms <= 0.0) return seen.ms(sharing) / n;
  return seen.ms(seen.largest()) * target.ms(sharing) / widest_ms / n;
}

double DrafterAccount::reading_ms(std::int64_t tokens, const CostCurve& target) const {
  const double n = static_cast<double>(tokens);
  if (read_tokens_ > 0.0) return read_ms_ / read_tokens_ * n;
  const double token_ms = target.ms(1);
  const double pass_ms = first_.empty() ? expected_share_ * token_ms : first_.ms(1);
  if (pass_ms <= 0.0) return kReadTokens * token_ms * n;
  const double further_ms = target.further_ms();
  return pass_ms * (further_ms > 0.0 ? further_ms / token_ms : kReadPasses) * n;
}

std::size_t DrafterAccount::gained_at(std::int32_t n_ready, bool drawn) {
  std::size_t load = 0;
  for (std::int32_t n = n_ready; n > 1 && load + 1 < kLoads; n /= 2) ++load;
  return drawn ? kLoads + load : load;
}

double DrafterAccount::most_lost_ms(double token_ms) const {
  // What reading has not yet brought back may be lost already.
  return std::clamp(kLostOfTime * elapsed_ms_ - invested_ms_, kLeastLost * token_ms,
                    kMostLost * token_ms);
}

bool DrafterAccount::proven(const UnreadText& text) const {
  const Gained& gained = gained_[gained_at(text.n_ready, text.drawn)];
  return gained.tokens >= kProvenTokens && gained.shares > 0.0;
}

void DrafterAccount::note_gain(const DrafterGain& gain) {
  const double n = static_cast<double>(gain.tokens);
  const double fade = std::max(0.0, 1.0 - n / kGainMemory);
  Gained& gained = gained_[gained_at(gain.n_ready, gain.drawn)];
  const double expected_ms = std::max(gain.expected_ms, -kMostLostAtOnce * gain.token_ms);
  gained.shares = gained.shares * fade + (gain.worth_ms > 0.0 ? expected_ms / gain.worth_ms : 0.0);
  gained.tokens = gained.tokens * fade + n;
  invested_ms_ = std::max(0.0, invested_ms_ - gain.measured_ms);
  expected_balance_ms_ = std::clamp(expected_balance_ms_ + gain.expected_ms,
                                    -2.0 * kMostLost * gain.token_ms, kMostGained * gain.token_ms);
  measured_balance_ms_ =
      std::clamp(measured_balance_ms_ + gain.measured_ms, -2.0 * kMostLostMeasured * gain.token_ms,
                 kMostGainedMeasured * gain.token_ms);
  const double most_lost_ms = this->most_lost_ms(gain.token_ms);
  if (expected_balance_ms_ < -most_lost_ms) suspended_by_expected_ = true;
  // Not before the balance where a suspension ends: it would end with the step.
  const double most_lost_measured_ms =
      std::max(most_lost_ms * (kMostLostMeasured / kMostLost), kLeastLostMeasured * gain.token_ms);
  if (measured_balance_ms_ < -most_lost_measured_ms) suspended_by_measured_ = true;
  token_ms_ = gain.token_ms;
}

double DrafterAccount::gain_share(const UnreadText& text) const {
  const Gained& gained = gained_[gained_at(text.n_ready, text.drawn)];
  return (gained.shares + text.expected_share * kFirstGainTokens) /
         (gained.tokens + kFirstGainTokens);
}

bool DrafterAccount::may_read(const UnreadText& text, const CostCurve& target) const {
  return kReadingMargin * reading_ms(text.tokens, target) <=
         gain_share(text) * text.worth_ms * static_cast<double>(text.to_come);
}

bool DrafterAccount::begin_reading(const UnreadText& text, const CostCurve& target) {
  const double ms = reading_ms(text.tokens, target);
  // Of all requests, as they share their steps.
  const double to_come_ms = text.worth_ms * text.n_ready * static_cast<double>(text.to_come);
  const double expected_ms = gain_share(text) * to_come_ms;
  const double ratio = ms > 0.0 ? expected_ms / ms : kGoodRatio;
  const double share = kRisked * std::clamp(ratio / kGoodRatio, 1.0, kMostRatio);
  const double most_ms = std::clamp(share * (elapsed_ms_ + to_come_ms), kLeastRisked * target.ms(1),
                                    kMostRisked * target.ms(1));
  if (!proven(text) && invested_ms_ + ms > most_ms) return false;
  invested_ms_ += ms;
  return true;
}

void DrafterAccount::give_back_reading(std::int64_t tokens, const CostCurve& target) {
  invested_ms_ = std::max(0.0, invested_ms_ - reading_ms(tokens, target));
}

std::optional<double> DrafterAccount::begin_exploration(std::int64_t unread,
                                                        const CostCurve& target) {
  const double token_ms = target.ms(1);
  const double pass_ms = first_.empty() ? expected_share_ * token_ms : first_.ms(1);
  const double expected = pass_ms + reading_ms(unread, target);
  // What was not used for long does not pay for much exploration at once.
  exploration_left_ms_ = std::min(exploration_left_ms_, expected);
  const double at_once = std::min(kExploredAtOnce * token_ms, kExploredOfTime * elapsed_ms_);
  if (expected > exploration_left_ms_ + at_once) return std::nullopt;
  exploration_left_ms_ -= expected;
  return expected;
}

void DrafterAccount::end_exploration(double expected_ms, double ms) {
  exploration_left_ms_ += expected_ms - ms;
}

void DrafterAccount::note_step(double ms) {
  elapsed_ms_ += ms;
  exploration_left_ms_ += kAllowance * ms;
  if (suspended_by_expected_) {
    expected_balance_ms_ += kAllowance * ms;
    suspended_by_expected_ = expected_balance_ms_ < 0.0;
  }
  if (suspended_by_measured_) {
    measured_balance_ms_ += kAllowance * ms;
    suspended_by_measured_ = measured_balance_ms_ < -kLeastLostMeasured * token_ms_;
  }
}

void DrafterAccount::tell(DrafterExperience* experience) const {
  experience->first_passes = first_.points();
  experience->further_passes = further_.points();
  experience->reading_ms = read_tokens_ > 0.0 ? read_ms_ / read_tokens_ : 0.0;
  for (const Gained& gained : gained_) {
    experience->gained.push_back(gained.shares);
    experience->gained.push_back(gained.tokens);
  }
}

void DrafterAccount::recall(const DrafterExperience& experience) {
  const double expected_share = expected_share_;
  const bool at_once = at_once_;
  *this = DrafterAccount();
  expected_share_ = expected_share;
  at_once_ = at_once;
  first_ = CostCurve(experience.first_passes);
  further_ = CostCurve(experience.further_passes);
  if (experience.reading_ms > 0.0) {
    read_tokens_ = kRecalledReading;
    read_ms_ = experience.reading_ms * kRecalledReading;
  }
  for (std::size_t i = 0; i < gained_.size() && 2 * i + 1 < experience.gained.size(); ++i) {
    const double shares = experience.gained[2 * i];
    const double tokens = experience.gained[2 * i + 1];
    if (!(tokens > 0.0)) continue;
    gained_[i].tokens = shares < 0.0 ? std::min(tokens, kRecalledLossTokens) / 2.0
                                     : std::min(tokens, kRecalledTokens);
    gained_[i].shares = shares * gained_[i].tokens / tokens;
  }
}

}  // namespace outrider
