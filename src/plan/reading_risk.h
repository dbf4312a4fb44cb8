// ReadingRisk: whether a drafter may read a text, and what that has cost and not brought back yet.
//
// Idea. A draft model has to read what it does not know of a text before it can guess. That is an
// investment in what is still to come of the text, and two questions are asked of it.
//
//   - Does it pay? It does when what the drafter gains per token is expected to bring more than
//     reading takes, with a margin: what reading takes is certain, what it brings is not.
//   - May it be risked? While the drafter was not seen to gain in such steps, what was invested and
//     has not come back is limited to a share of the time that has passed and is to come (kRisked).
//     A short answer to a process's first prompt does not pay for finding out about a draft. What
//     is expected to bring many times what it takes may risk more.
//
// What is invested falls with every gain that is measured, and rises with every loss. Until it has
// come back, guesses may lose less, too (plan/drafter_account.h).
//
// Example. The target takes 70 ms a token, and a draft is expected to gain 0.05 of that. It would
// read 40 tokens in 560 ms for 512 that are to come: these bring 512 * 70 * 0.05 = 1,792 ms, so
// reading pays. In a process's first request it may take 0.02 * 512 * 70 = 717 ms: it is begun. A
// second such text would bring what is invested to 1,120 ms: not yet.
//
// Times are milliseconds; `token_ms` is what the target takes for a single token, `elapsed_ms` what
// all steps took so far. One thread. Cost: O(1). Tested by reading_risk_test.cc.
#pragma once

#include <cstdint>

#include "plan/gain_shares.h"

namespace outrider {

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

class ReadingRisk {
 public:
  // Of all time so far, and of what a text is expected to take, what may be read before a drafter
  // has gained anything; up to three times as much where that is expected to bring many times what
  // reading takes.
  static constexpr double kRisked = 0.02;
  // However little time has passed, in times of a single token.
  static constexpr double kLeastRisked = 1.25;

  // Whether reading the text in `reading_ms` pays for what is to come of it.
  static bool pays(const UnreadText& text, double reading_ms, const GainShares& gains);

  // Whether that may be risked now; if so, it is invested. Of several texts: their tokens together.
  bool begin(const UnreadText& text, double reading_ms, const GainShares& gains, double token_ms,
             double elapsed_ms);
  // Of what was invested `ms` was not used: the drafter could not guess.
  void give_back(double ms);
  // Reading took `ms` more than what was invested in it; less than 0: it took less.
  void correct(double ms) { invested_ms_ += ms; }
  // Guesses gained `measured_ms`; less than 0: they lost.
  void note_gain(double measured_ms);

  // What reading took and guesses have not brought back yet.
  double invested_ms() const { return invested_ms_; }

 private:
  double invested_ms_ = 0.0;
};

}  // namespace outrider
