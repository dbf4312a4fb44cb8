// The one rule of speculation: what a step is expected to give for its time.
//
// A step that checks the nodes S of n requests is expected to say n + sum of chance(S) tokens and
// takes T(n + |S|), plus what drafting took. Of all S the best has the most tokens a millisecond.
// For every size the likeliest nodes are the best ones, so the sizes are compared, all of them: T
// need not rise with the width. Where a larger step takes less time than a smaller one, the smaller
// one is filled up to it.
//
// What the batch takes beyond the requests' own tokens, prompts that are read in it, it takes
// whatever is chosen: that is left out of T. Else a token would seem worth what it costs in this
// slow step, where it will cost a usual step's time if it is not guessed now.
//
// A step of another width than a plain one takes the time of a graph of its own, and so does the
// plain one behind it (CostCurve::detour_ms). Beside prompts every step has a width of its own.
//
// Whether a drafter should be asked for another guess is the same question about a step that does
// not exist yet: with the nodes that it is expected to add, and the time that it will take.
//
// A target that cannot take back a part of a chain (Rollback::kSaved) reads what was right of it
// again in the next step. So a guess costs that, too, with the chance that it is the first wrong
// one of its chain. Where several requests share the step, their chains are taken to be alike.
//
// Where several requests share a step, a guess for one of them holds up the others. A step with
// guesses must then be better by kSharedBetter: what a smaller gain is worth, estimates do not
// tell.
//
// Example. T = 72, 107, 130, 94 ms for 1 to 4 tokens, three nodes of chance 0.7, 0.5, 0.35 and 12
// ms for drafting them: 1/(72 + 12) = 0.0119; 1.7/(94 + 12) = 0.0160 (filled up to
// four); 2.2/106 = 0.0208; 2.55/106 = 0.0241 tokens a millisecond. Three nodes are sent.
//
// Cost: a table of as many times as nodes may be sent, per step, then O(nodes) a question.
// Tested by outlook_test.cc against all subsets of small trees, on six kinds of machines.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plan/cost_curve.h"

namespace outrider {

// What steps of this moment take, by how many nodes are sent beside what is in the batch anyway.
class StepCosts {
 public:
  // `base`: tokens in the batch anyway (prompts, decided tokens, roots), >= 1, of which `n_ready`
  // give a token of their own; what the others take is left out. At most `most` nodes can be sent,
  // filling included; >= 0. `reads_again`: behind a wrong guess the target reads its chain's root
  // and what was right again. Then nothing is filled up: what only fills is wrong.
  StepCosts(const CostCurve& curve, std::int32_t base, std::int32_t n_ready, std::int32_t most,
            bool reads_again = false);

  std::int32_t most() const { return static_cast<std::int32_t>(ms_.size()) - 1; }
  // With `nodes` nodes (0 to most()), filled up where that takes less time.
  double ms(std::int32_t nodes) const { return ms_[static_cast<std::size_t>(nodes)]; }
  // How many are sent then: at least `nodes`.
  std::int32_t filled(std::int32_t nodes) const { return filled_[static_cast<std::size_t>(nodes)]; }
  // A pass of these requests with `width` tokens that took `ms`, in these terms: what was left out
  // is, and the graphs are counted that it makes others build.
  double took_ms(double ms, std::int32_t width) const;
  bool reads_again() const { return !again_ms_.empty(); }
  // What `tokens` tokens (1 to most()) that are read again add to a step of these requests; 0 where
  // nothing is read again.
  double again_ms(std::int32_t tokens) const {
    return reads_again() ? again_ms_[static_cast<std::size_t>(tokens)] : 0.0;
  }

 private:
  std::vector<double> ms_;
  std::vector<std::int32_t> filled_;
  std::vector<double> again_ms_;  // by tokens; empty: nothing is read again
  double others_ms_ = 0.0;
  std::int32_t plain_width_ = 1;
  double before_ms_ = 0.0;  // what the plain pass would take for its graph
  double behind_ms_ = 0.0;  // what the plain pass behind another width takes for it
};

// A step that may still grow.
struct StepSoFar {
  std::span<const float> chances;    // of the nodes proposed for all requests, falling
  std::int32_t n_ready = 1;          // requests that give a token of their own
  const StepCosts* costs = nullptr;  // of this step
  double spent_ms = 0.0;             // by drafting
};

// Measured on recorded guesses (bench_planner --clients, useful drafts, 48 tokens): 16 clients had
// 0.981 of plain batching's speed without this on a Zen 4 and 0.990 with it, 4 clients 0.971 and
// 0.975. With 1.06 four clients lose again where guesses pay (0.986 to 0.972 on a Xeon).
inline constexpr double kSharedBetter = 1.03;

struct Outlook {
  std::int32_t nodes = 0;  // to send, the likeliest
  double tokens = 0.0;     // expected
  double ms = 0.0;         // of the step and the drafting
  double rate() const { return ms > 0.0 ? tokens / ms : 0.0; }
};

// The best step that can be made of what is there: of equally good ones the smallest, and of
// several requests' the plain one, unless it is beaten by kSharedBetter.
Outlook best_outlook(const StepSoFar& step);

// A drafter that may be asked for more.
struct Prospect {
  float tip_chance = 1.0f;  // of the node behind which it would guess
  double pass_ms = 0.0;     // of each further guess
  bool at_once = false;     // of the first one alone: it gives the others, too
  // The chance of its i-th further guess, given that the one before it is right; i from 0.
  std::function<double(std::int32_t)> prediction;
  // The chance that what others propose is already right there. Empty: nothing is.
  std::function<double(std::int32_t)> covered;
};

// Whether asking for one to kFurthest further guesses makes a better step than sending the best of
// what is there.
inline constexpr std::int32_t kFurthest = 8;
bool more_guesses_pay(const Prospect& prospect, StepSoFar step);

}  // namespace outrider
