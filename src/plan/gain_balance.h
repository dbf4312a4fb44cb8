// GainBalance: a drafter's gains of all steps, added up, and whether it is suspended for them.
//
// Idea. Chances and costs are estimates. A rule that follows them step by step can lose a little in
// each of a thousand steps. So what a drafter gains in each step is added up in a balance; a loss
// is a gain below 0. A drafter whose balance has fallen too low is suspended. While it is suspended
// the balance rises by the allowance, a part of all time, until the suspension ends. So all that is
// lost is bounded by the limits and the allowance.
//
// How low that is, the caller says with each gain: little may be lost while little time has passed.
// It is never less than `least_lost` and never more than `most_lost`. No balance rises above
// `most_gained`: else a good past would pay for a long bad time. None falls below -2 * most_lost:
// so an accident suspends a drafter for hundreds of tokens at most.
//
// A drafter has two balances: one of the gains that were expected when the guesses were sent, one
// of the gains that were measured. A measured gain is mostly chance (none of three guesses was
// right, or all were), and a good drafter that loses at first should not be suspended: its limits
// are wider. Expected gains vary less, and they do not stay wrong: chances are learned from every
// guess.
//
// A drafter of which no guess was ever right may lose less (kNeverRightLost): one that is right in
// half of its guesses loses that once in hundreds of times before its first hit.
//
// Example. A single token takes 70 ms, and 140 ms may be lost. Two steps are expected to gain -100
// and -50 ms: the balance is -150 ms, and the drafter is suspended. Of 15,000 ms the allowance of a
// hundredth is 150 ms: then the balance is 0, and it is asked again.
//
// Times are milliseconds, limits are in times of a single token. One thread. Cost: O(1). Tested by
// gain_balance_test.cc, both balances together by drafter_account_test.cc.
#pragma once

#include <limits>

namespace outrider {

// All in times of a single token.
struct BalanceLimits {
  double least_lost = 0.0;   // may be lost however little time has passed; >= 0
  double most_lost = 0.0;    // may be lost however much time has passed; >= least_lost
  double most_gained = 0.0;  // where the balance rises no further; > 0
  double ends_at = 0.0;      // the balance at which a suspension ends; >= -least_lost
};

// Of the gains that were expected.
inline constexpr BalanceLimits kExpectedLimits{
    .least_lost = 0.5, .most_lost = 2.0, .most_gained = 3.0, .ends_at = 0.0};
// Of the gains that were measured. Its suspensions end at -least_lost. They cannot begin above it:
// such a one would end with its step.
inline constexpr BalanceLimits kMeasuredLimits{
    .least_lost = 4.0, .most_lost = 6.0, .most_gained = 6.0, .ends_at = -4.0};
// What the latter may lose, and where its suspensions end, while no guess was ever right.
inline constexpr double kNeverRightLost = 2.0;

class GainBalance {
 public:
  explicit GainBalance(const BalanceLimits& limits) : limits_(limits) {}

  // From now on no more than `tokens` may be lost, and a suspension does not end below that, where
  // the limits say more; > 0.
  void bound_losses(double tokens) { bound_ = tokens; }
  // A step gained `gain_ms`. The drafter is suspended from now on where the balance is below
  // -may_be_lost_ms, taken within the limits.
  void note_gain(double gain_ms, double may_be_lost_ms, double token_ms);
  // A suspended drafter's balance rises by `ms`, which may end the suspension.
  void add_allowance(double ms);

  bool suspended() const { return suspended_; }

 private:
  BalanceLimits limits_;
  double bound_ = std::numeric_limits<double>::infinity();  // of losses, in single tokens
  double balance_ms_ = 0.0;
  double token_ms_ = 0.0;  // when a gain was noted last
  bool suspended_ = false;
};

}  // namespace outrider
