// What passes of a model take, by the number of their tokens: measured, when it is opened.
//
// Idea. A text of some depth, and behind it chains of each width in turn, round after round, each
// taken back again; the median over the rounds. Interleaved, so that a machine that becomes slower
// meanwhile does so for all widths alike. A round before them only warms up; where it takes the
// budget alone, it is what was measured. A pass of another width than the one before builds a graph
// of its own (PassCosts::rebuild_ms): the first width has two passes a round, and what the first of
// them takes more than the second is that. Of a state that cannot drop tokens the chains' roots may
// stay.
//
// Cost: the text, and about 13 single tokens a round for the usual widths on a CPU; rounds until
// the budget is spent, at most `rounds` behind the first. Tested by measure_costs_test.cc on
// made-up clocks.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/cost_point.h"
#include "base/status.h"
#include "model/language_model.h"

namespace outrider {

inline constexpr std::int32_t kMeasureRounds = 6;

struct MeasureOptions {
  // Those that the model takes are measured. The first is the one that passes mostly have.
  std::vector<std::int32_t> widths = {1, 2, 3, 4, 8, 16};
  std::int32_t depth = 64;  // tokens in front, >= 1
  double budget_ms = 3000.0;
  std::int32_t rounds = kMeasureRounds;                   // most, >= 1
  NowMs now_ms;                                           // empty: the machine's clock
  std::function<void(double fraction)> progress = {};     // of the budget; may be empty
  std::function<void(std::int32_t round)> on_round = {};  // each that ended, from 0; may be empty
  const std::atomic<bool>* cancel = nullptr;              // raised: kCancelled
};

// What passes of one width took: the times of all rounds but the first, in their order; of the
// first where that took the budget alone.
struct CostSamples {
  std::int32_t width = 1;
  std::vector<double> ms;  // [rounds], never empty
  // Of the first width: what the pass before took, which was right behind one of another width.
  std::vector<double> behind_ms = {};
};

// The model's own flag of interruption is options.cancel meanwhile, and none afterwards. Uses
// sequence 0, which must be empty and is left empty. Empty when there is nothing to choose: the
// model takes one token at a time, or cannot take back. Errors: kCancelled; what the model's own
// calls return.
Result<std::vector<CostSamples>> measure_cost_samples(LanguageModel& model,
                                                      const MeasureOptions& options);

// What building another graph took, by the passes of the first width: the lower quartile of what
// each took more than the one behind it, at most half of one; what is left to noise must not pass
// for a price of each wider pass. 0 where fewer than three can be compared.
double rebuild_ms(const CostSamples& first);

// The same: of each width the median, less what building another graph took.
Result<PassCosts> measure_costs(LanguageModel& model, const MeasureOptions& options);

// Whether four tokens, and as many as the widest of `known`, still take as many times as long as
// one as they did then, building a graph included. (Nothing else would find out that a width was
// measured in a bad moment: one that seems too dear is never chosen.) What takes longer to look at
// than options.budget_ms is believed, and so is what cannot be measured; nothing known does not
// hold. Of `options` budget_ms, now_ms and cancel count. Errors: kCancelled.
Result<bool> costs_hold(LanguageModel& model, const PassCosts& known, MeasureOptions options);

// The `share`-th quantile of what was measured (0.5: the median), the lower of two. REQUIRES:
// `values` not empty, share in [0, 1]
double quantile(std::vector<double> values, double share);

}  // namespace outrider
