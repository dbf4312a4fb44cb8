// DraftSharpness: how much more decided a draft model's guesses should be than the model is.
//
// Idea. A guess need not be drawn from p: the target's choice never looks at the draft, so a guess
// may be the argmax of any score, and the one wanted is the likeliest argmax of log q + g. A small
// or quantised model errs towards flat distributions: its log p is log q shrunk, with noise on top.
// Where log q = a log p + errors, argmax of a log p + g is right most often.
//
// `a` is learned from the two best tokens of each guess, when the target says one of them. With d
// and e the lead of the one that was said, in log p and in g, a guess holds where a d + e > 0. That
// step, made a little smooth, is followed uphill: what counts are the close decisions, which
// another `a` would turn. (T 1, a Q3_K_S draft of SmolLM2-135M: 0.641 of guesses hold with 1, 0.660
// with 1.15 to 1.2; T 0.7: 0.694 and 0.701.)
//
// Only for the coupled rule: the others compare the draft's own distribution. One thread. Cost:
// O(1). Source: Gumbel-max coupling, Daliri et al. 2024; the scale is ours. Tested by
// draft_sharpness_test.cc.
#pragma once

#include <span>
#include <vector>

#include "base/types.h"

namespace outrider {

// The two best tokens behind a node, and by how much the first leads: its score over the second's
// is factor * log_p_lead + noise_lead.
struct DraftRivals {
  Token first = kNoToken;  // kNoToken: nothing to learn from
  Token second = kNoToken;
  double log_p_lead = 0.0;
  double noise_lead = 0.0;
};

class DraftSharpness {
 public:
  static constexpr double kLeast = 0.5;
  static constexpr double kMost = 2.0;

  // What to multiply log-probabilities with, in [kLeast, kMost]; 1 while nothing is known.
  float factor() const { return static_cast<float>(factor_); }

  // The target said `said` where the draft model's best were `rivals`.
  void learn(const DraftRivals& rivals, Token said);

  // From run to run: two numbers, and back. What numbers() cannot have given is passed over.
  std::vector<double> numbers() const { return {factor_, seen_}; }
  void recall(std::span<const double> numbers);

 private:
  double factor_ = 1.0;
  double seen_ = 0.0;  // guesses, up to as many as are remembered
};

}  // namespace outrider
