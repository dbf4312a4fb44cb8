// DrafterAccount: what one drafter costs, what it gains, and so whether it may be asked.
//
// Idea. Chances and costs are estimates. A rule that follows them step by step can lose a little in
// each of a thousand steps. So what a drafter has gained in each step is added up in a balance. Its
// gain is the time that plain decoding would have taken for the tokens that its guesses gave, less
// the time that these guesses added to the target's pass, less the time that drafting took. A loss
// is a gain below 0.
//
// There are two balances: one of the gains that were expected when the guesses were sent, one of
// the gains that were measured. A measured gain is mostly chance (none of three guesses was right,
// or all were), and a good drafter that loses at first should not be suspended. Expected gains vary
// less, and they do not stay wrong: chances are learned from every guess.
//
// A drafter is suspended when its expected balance falls below -kMostLost, or its measured balance
// below -kMostLostMeasured (both in times of a single token); earlier while little time has passed
// (kLostOfTime) or what it read has not paid yet, but not before -kLeastLost, or
// -kLeastLostMeasured. While it is suspended that balance rises by the allowance, one part in a
// hundred of all time. The suspension ends when the expected balance is 0, or the measured one
// -kLeastLostMeasured. No balance rises above kMostGained, or kMostGainedMeasured: else a good past
// would pay for a long bad time. So all that speculation loses is bounded by these limits and the
// allowance.
//
// Exploration: a drafter that is suspended, or does not seem to pay, is asked now and then all the
// same, to learn what it is worth. That may take one part in a hundred of all time too, and the
// time of kExploredAtOnce single tokens at once, as soon as that is kExploredOfTime of all time. So
// a useless drafter costs about that much, however slow it is, and one that is useful, or has
// become so, is noticed.
//
// Reading. A draft model has to read what it does not know of a text: a prompt, or what was said
// while it was suspended. It does when what it gains per token is expected to pay for that in what
// is still to come of the text. What a token is worth depends on how many requests share a step,
// and what guesses gain even more so: sixteen requests leave no room for them on most processors.
// So gains are counted as shares of a token's plain time, by the number of requests (a load). And
// by whether texts are drawn: what guesses gain with the likeliest tokens, at temperature 0, pays
// for reading prompts that it does not pay for at temperature 1. What would hold up a text's first
// token is read behind it (engine/guide.cc).
//
// Accidents. What is measured may be an accident: a pass that was held up alone counts as no more
// than was credible (plan/held_up.h), a step's loss as kMostLostAtOnce, and no balance falls
// further below its limit than that limit once more. So an accident suspends a drafter for hundreds
// of tokens at most.
//
// Risk. While little was gained, what is read, and all else that could turn out lost, is limited to
// a share of the time that has passed and is to come (kRisked): a short answer to a process's
// first prompt does not pay for finding out about a draft.
//
// Example. The target takes 70 ms a token, a draft model 12 ms a guess. In a step of four tokens
// (94 ms) two of three guesses were right. They gave 2 * 70 ms and took 24 + 36 ms: the measured
// gain is 80 ms. With chances of 0.7, 0.5 and 0.35 the expected gain was 1.55 * 70 - 60 = 48.5 ms.
//
// Times are milliseconds; `token_ms` is what the target takes for a single token. One thread. Cost:
// O(1). Tested by drafter_account_test.cc, and by engine/engine_planner_test.cc with made-up
// machines, drafts and loads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "plan/cost_curve.h"
#include "plan/experience.h"
#include "plan/held_up.h"

namespace outrider {

// What a drafter did in a step, reading left out.
struct DrafterGain {
  double expected_ms = 0.0;  // gained, by the chances of its guesses
  double measured_ms = 0.0;  // gained, by what came
  std::int64_t tokens = 0;   // by which the texts went on that it was asked about
  std::int32_t n_ready = 1;  // requests that shared the step
  bool drawn = false;        // texts of them are drawn: their temperature is not 0
  double worth_ms = 0.0;     // what a token takes plainly in such a step
  double token_ms = 0.0;
};

// A text that a drafter would have to read.
struct UnreadText {
  std::int64_t tokens = 0;
  std::int64_t to_come = 0;  // tokens by which it is expected to go on
  std::int32_t n_ready = 1;  // requests that share its steps
  bool drawn = false;        // as in DrafterGain
  double worth_ms = 0.0;     // what a token takes plainly there
  // Of a token's plain time, what the drafter is expected to gain there.
  double expected_share = 0.0;
};

class DrafterAccount {
 public:
  // Of all time: what a suspended drafter's balance rises by, and what exploration may take.
  static constexpr double kAllowance = 0.01;
  // Of all time so far, and of what a text is expected to take, what may be read before a drafter
  // has gained anything; up to three times as much where that is expected to bring many times what
  // reading takes.
  static constexpr double kRisked = 0.02;
  // Of all time so far, what guesses may lose, and what exploration may take beyond the allowance.
  static constexpr double kLostOfTime = 0.02;
  static constexpr double kExploredOfTime = 0.01;
  // The others are in times of a single token.
  static constexpr double kExploredAtOnce = 2.5;
  static constexpr double kLeastRisked = 1.25;  // of kRisked, however little time has passed
  static constexpr double kLeastLost = 0.5;     // however little time has passed
  static constexpr double kMostLost = 2.0;
  static constexpr double kMostLostAtOnce = 4.0;  // what a step's loss says of later ones at most
  static constexpr double kMostGained = 3.0;
  static constexpr double kLeastLostMeasured = 4.0;  // likewise, and where its suspensions end
  static constexpr double kMostLostMeasured = 6.0;
  static constexpr double kMostGainedMeasured = 6.0;

  // --- what it costs ---

  // A pass takes about `share` of one of the target's as wide: by the models' sizes, say, before
  // any pass was seen. > 0
  void expect_passes(double share) { expected_share_ = share; }
  // Whether all guesses of a draft come out of its first pass; further ones take no time then.
  void set_at_once(bool at_once) { at_once_ = at_once; }
  bool at_once() const { return at_once_; }
  // A pass for `sharing` requests took `ms`: the first of a draft, or a further one. Returns what
  // it counts as: less where it was held up.
  double note_pass(bool first, std::int32_t sharing, double ms, const CostCurve& target);
  // Reading `tokens` tokens took `ms` beside the pass that they were read in. Returns likewise.
  double note_reading(std::int64_t tokens, double ms, const CostCurve& target);

  // What one more pass takes for each of `sharing` requests. Wider passes than were seen rise as
  // the target's do. Before any was seen: what was expected, else 0, so that the first one is made
  // at once.
  double pass_ms(bool first, std::int32_t sharing, const CostCurve& target) const;
  // What reading `tokens` tokens is expected to take: as seen, else from its passes and what tokens
  // beside others take of the target's, else a guess.
  double reading_ms(std::int64_t tokens, const CostCurve& target) const;

  // --- what it gains ---

  void note_gain(const DrafterGain& gain);
  // What reading took and guesses have not brought back yet.
  double invested_ms() const { return invested_ms_; }
  // It has lost too much: it is asked for exploration only.
  bool suspended() const { return suspended_by_expected_ || suspended_by_measured_; }
  // Whether reading pays for what is to come of the text.
  bool may_read(const UnreadText& text, const CostCurve& target) const;
  // Whether that may be risked now; if so, it is begun. Of several texts: their tokens together.
  bool begin_reading(const UnreadText& text, const CostCurve& target);
  // `tokens` of what was begun could not be read: the drafter could not guess.
  void give_back_reading(std::int64_t tokens, const CostCurve& target);
  // Of a token's plain time what it gains in steps of such a text; less than 0: what it loses.
  double gain_share(const UnreadText& text) const;

  // --- exploration and the allowance ---

  // Whether the drafter may be asked now although it would not pay; it would read `unread` tokens.
  // If so, what that is expected to take is taken from what is left for exploration, and returned.
  std::optional<double> begin_exploration(std::int64_t unread, const CostCurve& target);
  // It took `ms` where `expected_ms` were taken.
  void end_exploration(double expected_ms, double ms);
  // A step took `ms`, all in all.
  void note_step(double ms);

  // --- from run to run ---

  // Writes down what it costs and gains, without the balances: those are this run's.
  void tell(DrafterExperience* experience) const;
  // In place of what is known, but for what passes are expected to take.
  void recall(const DrafterExperience& experience);

 private:
  // Numbers of requests that count as one: 1, 2 and 3, 4 to 7, 8 to 15, more.
  static constexpr std::size_t kLoads = 5;
  struct Gained {
    double shares = 0.0;  // sum over tokens of the share gained of each one's plain time
    double tokens = 0.0;
  };
  static std::size_t gained_at(std::int32_t n_ready, bool drawn);  // index of gained_
  double most_lost_ms(double token_ms) const;
  // The longest pass that is credible.
  double most_pass_ms(bool first, std::int32_t sharing, const CostCurve& target) const;
  // Whether it was seen to gain in steps of such a text.
  bool proven(const UnreadText& text) const;

  CostCurve first_;  // by requests that share the pass
  CostCurve further_;
  HeldUp held_up_pass_;
  HeldUp held_up_reading_;
  double expected_share_ = 0.0;  // 0: unknown
  bool at_once_ = false;
  double read_tokens_ = 0.0;  // the older ones fading, as all sums here
  double read_ms_ = 0.0;
  std::array<Gained, 2 * kLoads> gained_{};  // the latter half of texts that are drawn
  double elapsed_ms_ = 0.0;                  // all steps
  double invested_ms_ = 0.0;                 // in reading, less what was gained since
  double expected_balance_ms_ = 0.0;
  double measured_balance_ms_ = 0.0;
  bool suspended_by_expected_ = false;
  bool suspended_by_measured_ = false;
  double token_ms_ = 0.0;             // when a gain was noted last
  double exploration_left_ms_ = 0.0;  // what exploration may take, less what it took
};

}  // namespace outrider
