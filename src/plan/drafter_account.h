// DrafterAccount: what one drafter costs, what it brings, and so whether it may go on.
//
// Idea. Chances and costs are estimates, and a rule that follows them step by step can lose a
// little in each of a thousand steps. So a balance is kept as well. A drafter is credited with the
// time that plain decoding would have taken for the tokens that its guesses bring, and charged with
// what they make the step take and what making them took.
//
// There are two balances: by what the guesses that were sent were expected to bring, and by what
// they brought, by the clock. What one step brings is mostly luck (none of three guesses, or all),
// and a good drafter that loses the first throws must not be suspended for that; its chances are
// learned from every guess, so expectations that are wrong do not stay so. One that is expected to
// have lost the time of kMostLost single tokens more than it brought is suspended until an
// allowance, one part in a hundred of all time, has made up for that. So is, whatever the estimates
// say, one that has lost kMostLostByClock by the clock, until kMostLost of it are made up for.
// Balances rise to kMostGained and kMostGainedByClock at most, so that a good past does not make
// up for a long bad time. What speculation loses is bounded by these limits and the allowance.
//
// A drafter that is suspended, or does not seem to pay, is asked now and then all the same: such
// trials may take one part in a hundred as well, and kAtOnce tokens' time at once. So a useless
// drafter costs about that, however dear it is, and one that is or has become useful is found out.
//
// Reading a text that the drafter has not followed (a prompt, what was said while it was suspended)
// is an investment: it is made when what the drafter earns per token pays for it in the rest of the
// text.
//
// Example. The target takes 70 ms a token, a draft model 12 ms a guess. In a step of four tokens
// (94 ms) two of three guesses were right: credited 2 * 70, charged 24 + 36 ms, gain 80 ms. With
// chances of 0.7, 0.5 and 0.35 the gain was expected to be 1.55 * 70 - 60 = 48.5 ms.
//
// Times are milliseconds; `token_ms` is what the target takes for a single token. One thread. Cost:
// O(1). Tested by drafter_account_test.cc, and by engine/engine_planner_test.cc with made-up
// machines, drafts and loads.
#pragma once

#include <cstdint>

#include "plan/cost_curve.h"
#include "plan/experience.h"

namespace outrider {

class DrafterAccount {
 public:
  static constexpr double kTrialShare = 0.01;
  static constexpr double kAtOnce = 2.5;
  static constexpr double kMostLost = 2.0;
  static constexpr double kMostGained = 3.0;
  static constexpr double kMostLostByClock = 6.0;
  static constexpr double kMostGainedByClock = 6.0;

  // --- what it costs ---

  // A pass for `sharing` requests took `ms`: the first of a draft, or a further one.
  void note_pass(bool first, std::int32_t sharing, double ms);
  // Reading `tokens` tokens took `ms` beside the pass that they were read in.
  void note_reading(std::int64_t tokens, double ms);

  // What one more pass takes for each of `sharing` requests; 0: nobody knows. Of a pass that was
  // not seen yet, nothing is expected: it is found out at once.
  double pass_ms(bool first, std::int32_t sharing) const;
  // What reading `tokens` tokens is expected to take.
  double reading_ms(std::int64_t tokens) const;

  // --- what it brings ---

  // In a step it brought `actual_ms` (less than 0: it lost that) and was expected to bring
  // `expected_ms`, reading left out, where the texts that it was asked about went on by `tokens`.
  void note_gain(double expected_ms, double actual_ms, std::int64_t tokens, double token_ms);
  // It cost more than it brings: only trials are made.
  bool suspended() const { return suspended_by_expectation_ || suspended_by_clock_; }
  // Whether reading `missed` tokens pays in a text that is expected to go on by `to_come`.
  bool may_read(std::int64_t missed, std::int64_t to_come, double token_ms) const;

  // --- trials and allowances ---

  // Whether a trial may be made now of a drafter that has missed so many tokens; if so, it is
  // counted with what it is expected to take, until note_trial().
  bool take_trial(std::int64_t missed, double token_ms);
  void note_trial(std::int64_t missed, double ms);
  // A step took `ms`, all in all.
  void note_step(double ms);

  // --- from run to run ---

  // What it costs and brings, without the balances: those are this run's.
  void tell(DrafterExperience* experience) const;
  // In place of what is known.
  void recall(const DrafterExperience& experience);

 private:
  double trial_ms(std::int64_t missed) const { return pass_ms(true, 1) + reading_ms(missed); }

  CostCurve first_;  // by requests that share the pass
  CostCurve further_;
  double read_tokens_ = 0.0;  // the older ones fading, as all sums here
  double read_ms_ = 0.0;
  double gained_ms_ = 0.0;
  double gained_tokens_ = 0.0;
  double expected_ms_ = 0.0;  // the two balances
  double actual_ms_ = 0.0;
  bool suspended_by_expectation_ = false;
  bool suspended_by_clock_ = false;
  double token_ms_ = 0.0;   // when a gain was noted last
  double trials_ms_ = 0.0;  // granted for trials, less what they took
};

}  // namespace outrider
