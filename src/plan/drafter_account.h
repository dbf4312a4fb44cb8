// DrafterAccount: what one drafter costs, what it gains, and so whether it may be asked.
//
// Idea. It puts together five parts. Each can be read by itself; ReadingRisk asks GainShares, and
// otherwise they meet only here:
//
//   DrafterCosts   what its passes and reading take                        plan/drafter_costs.h
//   GainShares     what it gains of a token's plain time, by kind of step  plan/gain_shares.h
//   ReadingRisk    whether it may read a text, and what that has cost      plan/reading_risk.h
//   GainBalance    whether it is suspended: by the gains that were         plan/gain_balance.h
//                  expected, and by those that were measured
//   Exploration    whether it is asked although that does not seem to pay  plan/exploration.h
//
// Its gain in a step is the time that plain decoding would have taken for the tokens that its
// guesses gave, less the time that these guesses added to the target's pass, less the time that
// drafting took (engine/learn.cc). Every gain goes to four of the parts: the expected one to
// GainShares and to its balance, the measured one to its balance and to what reading brings back.
//
// What guesses may lose before a balance suspends it is a share of all time (kLostOfTime), less
// what was invested in reading: that may be lost already. What exploration may take, and what a
// suspended drafter's balances rise by, is the allowance, a hundredth of all time. So all that
// speculation loses is bounded: by shares of all time, and by limits that are times of a single
// token. What would hold up a text's first token is read behind it (engine/guide.cc).
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
#include "plan/drafter_costs.h"
#include "plan/experience.h"
#include "plan/exploration.h"
#include "plan/gain_balance.h"
#include "plan/gain_shares.h"
#include "plan/reading_risk.h"

namespace outrider {

class DrafterAccount {
 public:
  // Of all time: what a suspended drafter's balance rises by, and what exploration may take.
  static constexpr double kAllowance = 0.01;
  // Of all time so far, what guesses may lose.
  static constexpr double kLostOfTime = 0.02;

  // --- what it costs (plan/drafter_costs.h) ---

  void expect_passes(double share) { costs_.expect_passes(share); }
  void set_at_once(bool at_once) { costs_.set_at_once(at_once); }
  bool at_once() const { return costs_.at_once(); }
  double note_pass(bool first, std::int32_t sharing, double ms, const CostCurve& target) {
    return costs_.note_pass(first, sharing, ms, target);
  }
  // Once reading was seen, what this took beyond what it was expected to take is invested as well.
  double note_reading(std::int64_t tokens, double ms, const CostCurve& target);
  double pass_ms(bool first, std::int32_t sharing, const CostCurve& target) const {
    return costs_.pass_ms(first, sharing, target);
  }
  double reading_ms(std::int64_t tokens, const CostCurve& target) const {
    return costs_.reading_ms(tokens, target);
  }

  // Whether reading was seen (DrafterCosts::has_read).
  bool has_read() const { return costs_.has_read(); }
  // Whether any pass or reading of it was seen (DrafterCosts::was_seen).
  bool was_seen() const { return costs_.was_seen(); }

  // --- what it gains ---

  void note_gain(const DrafterGain& gain);
  // It has lost too much: it is asked for exploration only.
  bool suspended() const { return expected_.suspended() || measured_.suspended(); }

  // --- reading (plan/reading_risk.h) ---

  // What reading took and guesses have not brought back yet.
  double invested_ms() const { return risk_.invested_ms(); }
  // Whether reading pays for what is to come of the text.
  bool may_read(const UnreadText& text, const CostCurve& target) const;
  // Whether that may be risked now; if so, it is begun. Of several texts: their tokens together.
  bool begin_reading(const UnreadText& text, const CostCurve& target);
  // `tokens` of what was begun are not read now: the drafter could not guess, or reads in pieces.
  void give_back_reading(std::int64_t tokens, const CostCurve& target);
  // A later piece of what was begun is read. It was risked then.
  void go_on_reading(std::int64_t tokens, const CostCurve& target);

  // --- exploration (plan/exploration.h) ---

  // Whether the drafter may be asked now although it would not pay; it would read `unread` tokens.
  // If so, what that is expected to take, counted `times`, is taken from what is left for
  // exploration, and returned. With 10 it is asked for a tenth of the allowance.
  std::optional<double> begin_exploration(std::int64_t unread, const CostCurve& target,
                                          double times = 1.0);
  // It took `ms`, counted likewise, where `expected_ms` were taken.
  void end_exploration(double expected_ms, double ms) { exploration_.end(expected_ms, ms); }

  // --- time ---

  // A step took `ms`, all in all.
  void note_step(double ms);

  // --- from run to run ---

  // Writes down what it costs and gains, without the balances: those are this run's.
  void tell(DrafterExperience* experience) const;
  // In place of what is known, but for what passes are expected to take.
  void recall(const DrafterExperience& experience);

 private:
  DrafterCosts costs_;
  GainShares gains_;
  ReadingRisk risk_;
  GainBalance expected_{kExpectedLimits};
  GainBalance measured_{kMeasuredLimits};
  Exploration exploration_;
  double elapsed_ms_ = 0.0;  // all steps
};

}  // namespace outrider
