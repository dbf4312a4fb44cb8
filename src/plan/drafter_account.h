// DrafterAccount: what one drafter costs, what it gains, and so whether it may be asked.
//
// Idea. Chances and costs are estimates. A rule that follows them step by step can lose a little in
// each of a thousand steps. So what a drafter has gained in each step is added up in a balance. Its
// gain is the time that plain decoding would have taken for the tokens that its guesses gave, less
// the time that these guesses added to the target's pass, less the time that drafting took. A loss
// is a gain below 0.
//
// There are two balances: one of the gains that were expected when the guesses were sent, one of
// the gains that were measured. A measured gain is mostly luck (none of three guesses was right, or
// all were), and a good drafter that is unlucky at first should not be suspended. Expected gains
// vary less, and they do not stay wrong: chances are learned from every guess.
//
// A drafter is suspended when its expected balance falls below -kMostLost, or its measured balance
// below -kMostLostMeasured (both in times of a single token). While it is suspended that balance
// rises by the allowance, one part in a hundred of all time. The suspension ends when the expected
// balance is 0, or the measured one is kMostLost above its limit. No balance rises above
// kMostGained, or kMostGainedMeasured: else a good past would pay for a long bad time. So all that
// speculation loses is bounded by these limits and the allowance.
//
// Exploration: a drafter that is suspended, or does not seem to pay, is asked now and then all the
// same, to learn what it is worth. That may take one part in a hundred of all time too, and the
// time of kExploredAtOnce single tokens at once. So a useless drafter costs about that much,
// however slow it is, and one that is useful, or has become so, is noticed.
//
// Reading. A draft model has to read what it does not know of a text: a prompt, or what was said
// while it was suspended. It does when what it gains per token is expected to pay for that in what
// is still to come of the text. What would hold up a text's first token is read behind it
// (engine/guide.cc).
//
// Example. The target takes 70 ms a token, a draft model 12 ms a guess. In a step of four tokens
// (94 ms) two of three guesses were right. They gave 2 * 70 ms and took 24 + 36 ms: the measured
// gain is 80 ms. With chances of 0.7, 0.5 and 0.35 the expected gain was 1.55 * 70 - 60 = 48.5 ms.
//
// Times are milliseconds; `token_ms` is what the target takes for a single token. One thread. Cost:
// O(1). Tested by drafter_account_test.cc, and by engine/engine_planner_test.cc with made-up
// machines, drafts and loads.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/cost_curve.h"
#include "plan/experience.h"

namespace outrider {

class DrafterAccount {
 public:
  // Of all time: what a suspended drafter's balance rises by, and what exploration may take.
  static constexpr double kAllowance = 0.01;
  // The others are in times of a single token.
  static constexpr double kExploredAtOnce = 2.5;
  static constexpr double kMostLost = 2.0;
  static constexpr double kMostGained = 3.0;
  static constexpr double kMostLostMeasured = 6.0;
  static constexpr double kMostGainedMeasured = 6.0;

  // --- what it costs ---

  // A pass for `sharing` requests took `ms`: the first of a draft, or a further one.
  void note_pass(bool first, std::int32_t sharing, double ms);
  // Reading `tokens` tokens took `ms` beside the pass that they were read in.
  void note_reading(std::int64_t tokens, double ms);

  // What one more pass takes for each of `sharing` requests; 0 before any was seen, so that the
  // first one is made at once.
  double pass_ms(bool first, std::int32_t sharing) const;
  // What reading `tokens` tokens is expected to take: as seen, else from its passes, else a guess.
  double reading_ms(std::int64_t tokens, double token_ms) const;

  // --- what it gains ---

  // In a step it gained `measured_ms` and was expected to gain `expected_ms`, reading left out. The
  // texts that it was asked about went on by `tokens`.
  void note_gain(double expected_ms, double measured_ms, std::int64_t tokens, double token_ms);
  // It has lost too much: it is asked for exploration only.
  bool suspended() const { return suspended_by_expected_ || suspended_by_measured_; }
  // Whether reading `unread` tokens pays in a text that is expected to go on by `to_come`.
  bool may_read(std::int64_t unread, std::int64_t to_come, double token_ms) const;

  // --- exploration and the allowance ---

  // Whether the drafter may be asked now although it would not pay; it would read `unread` tokens.
  // If so, what that is expected to take is taken from what is left for exploration, and returned.
  std::optional<double> begin_exploration(std::int64_t unread, double token_ms);
  // It took `ms` where `expected_ms` were taken.
  void end_exploration(double expected_ms, double ms);
  // A step took `ms`, all in all.
  void note_step(double ms);

  // --- from run to run ---

  // Writes down what it costs and gains, without the balances: those are this run's.
  void tell(DrafterExperience* experience) const;
  // In place of what is known.
  void recall(const DrafterExperience& experience);

 private:
  CostCurve first_;  // by requests that share the pass
  CostCurve further_;
  double read_tokens_ = 0.0;  // the older ones fading, as all sums here
  double read_ms_ = 0.0;
  double gained_ms_ = 0.0;
  double gained_tokens_ = 0.0;
  double expected_balance_ms_ = 0.0;
  double measured_balance_ms_ = 0.0;
  bool suspended_by_expected_ = false;
  bool suspended_by_measured_ = false;
  double token_ms_ = 0.0;             // when a gain was noted last
  double exploration_left_ms_ = 0.0;  // what exploration may take, less what it took
};

}  // namespace outrider
