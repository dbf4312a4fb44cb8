// Planner: what was learned about costs and acceptance, and what follows from it.
//
// One for each engine: it learns from all requests and outlives them. plan/cost_curve.h says what
// steps take, plan/acceptance_table.h what guesses are worth, plan/outlook.h what to do about it.
//
// A drafter is asked when its next guess makes a better step and its account allows it
// (plan/drafter_account.h), which bounds what can be lost.
//
// One thread. Tested by planner_test.cc, and by engine/engine_planner_test.cc on made-up machines
// and drafts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/acceptance_table.h"
#include "plan/calibrate.h"
#include "plan/cost_curve.h"
#include "plan/drafter_account.h"
#include "plan/outlook.h"

namespace outrider {

// What is particular to one request.
class RequestPlan {
 public:
  AcceptanceBias bias;

  // The text's length when the drafter was asked last; 0: never.
  std::int64_t asked_at(std::size_t drafter) const {
    return drafter < asked_at_.size() ? asked_at_[drafter] : 0;
  }
  void set_asked_at(std::size_t drafter, std::int64_t length) {
    if (asked_at_.size() <= drafter) asked_at_.resize(drafter + 1, 0);
    asked_at_[drafter] = length;
  }
  // The text is another one now: of this one no drafter has been asked.
  void forget_asked() { asked_at_.clear(); }

 private:
  std::vector<std::int64_t> asked_at_;  // [drafters]
};

// A guess that a drafter has not made yet, for one request.
struct NextGuess {
  std::size_t drafter = 0;
  float tip_chance = 1.0f;         // of the node behind which it would be
  std::int32_t tip_depth = 0;      // of that node
  std::int32_t sharing = 1;        // requests that are drafted for in the same pass
  std::span<const float> covered;  // [depth] the chance that what others propose is right there
  // True: a first guess is decided by the upper predictions of it and of those after it. False: by
  // the mean ones, for a drafter that would have to catch up with the text after a suspension. It
  // should not be asked and suspended in turn.
  bool optimistic = true;
};

class Planner {
 public:
  // The target's pass was measured, at load or elsewhere.
  void set_target_cost(const CostCurve& curve) { target_ = curve; }
  const CostCurve& target_cost() const { return target_; }

  // Whether enough is known to choose for `n_ready` requests: the time of their plain step, or of a
  // smaller one, and of more than one step of a wider one.
  bool knows_costs(std::int32_t n_ready) const;
  // Where it is not: the most tokens to send for each request, so that passes of both widths are
  // measured. 1 at first, then kMeasuringWidth.
  static constexpr std::int32_t kMeasuringWidth = 4;
  std::int32_t measuring_width(std::int32_t n_ready) const;

  const AcceptanceTable& acceptance() const { return acceptance_; }
  const CalibrationScore& score() const { return score_; }

  // --- drafters, by their index in the engine ---

  // Whether the guess makes a better step of `step`.
  bool another_pass_pays(const NextGuess& guess, const RequestPlan& plan,
                         const StepSoFar& step) const;

  // Whether guesses that are sure to be right would make a better step of `n_ready` requests (>= 1)
  // than none: for one request, or for more of them at once. If not, asking the drafter teaches
  // nothing but what its passes take. True while none was seen.
  bool sure_guesses_pay(std::size_t drafter, std::int32_t n_ready, const StepCosts& costs) const;

  // What it costs and gains. What is noted there stays until forget().
  DrafterAccount& account(std::size_t drafter) { return accounts_[drafter]; }
  const DrafterAccount& account(std::size_t drafter) const { return accounts_[drafter]; }

  // A pass of the drafter takes about `share` of one of the target's as wide, as far as is known
  // before any was seen (by the models' sizes, say); > 0.
  void expect_passes(std::size_t drafter, double share) { accounts_[drafter].expect_passes(share); }

  // What one more pass of it takes for each of `sharing` requests (DrafterAccount::pass_ms).
  double pass_ms(std::size_t drafter, bool first, std::int32_t sharing) const {
    return accounts_[drafter].pass_ms(first, sharing, target_);
  }
  // Of the time that plain tokens take where `n_ready` requests share a step, what the drafter is
  // expected to save if it guesses for all: by its predictions and by what passes take. >= 0. The
  // upper predictions for a request alone, which is where a drafter is found out; among several the
  // mean ones, since there is little to gain and all of them would read at once.
  double expected_share(std::size_t drafter, std::int32_t n_ready) const;
  // A text of which `unread` tokens are to be read by the drafter; `drawn` as in DrafterGain.
  UnreadText unread_text(std::size_t drafter, std::int64_t unread, std::int64_t remaining,
                         std::int32_t n_ready, bool drawn) const;

  // What the target takes for a single token.
  double token_ms() const { return target_.ms(1); }

  // Another drafter has this index.
  void forget(std::size_t drafter);

  // What was learned of a drafter that holds from run to run; and back, for one that nothing is
  // known of yet. What is not possible is as nothing.
  DrafterExperience experience(std::size_t drafter) const;
  void recall(std::size_t drafter, const DrafterExperience& experience);

  // --- texts ---

  // A text ended with `tokens` tokens behind its prompt. `at_limit`: it would have been longer, and
  // was wanted.
  void note_text(std::int64_t tokens, bool at_limit);
  // By how many tokens a text is expected to go on, at most `remaining`: the tokens of the last
  // dozen texts for each of them that ended, as if a text were as likely to end behind each token.
  // kFirstLength before any text ended.
  static constexpr double kFirstLength = 256.0;
  std::int64_t expected_tokens(std::int64_t remaining) const;

  // --- steps ---

  // A pass of the target with `width` tokens took `ms`. A width of 0: one that says nothing of
  // others, with a prompt in it.
  void note_target(std::int32_t width, double ms) { target_.note(width, ms); }
  // A step took `ms`, all in all.
  void note_step(double ms);
  std::int64_t steps_noted() const { return steps_noted_; }
  // The text went on with `emitted` behind `proposed`.
  void learn(const TokenTree& proposed, std::span<const Token> emitted, DrafterMask asked,
             RequestPlan& plan);

 private:
  CostCurve target_;
  AcceptanceTable acceptance_;
  CalibrationScore score_;
  std::int64_t steps_noted_ = 0;
  double texts_ = 1.0;  // that ended, the older ones fading; to begin with, as if one had
  double texts_tokens_ = kFirstLength;
  std::vector<DrafterAccount> accounts_ = std::vector<DrafterAccount>(kMaxDrafters);
};

}  // namespace outrider
