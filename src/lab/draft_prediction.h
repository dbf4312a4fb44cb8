// What a draft is expected to gain, from what its guesses are worth and take, by the planner's own
// rule (plan/outlook.h).
//
// Of all lengths of a chain the one with the most tokens a millisecond. The planner, which decides
// in each step by how sure the draft is, does a little better; what it loses while it learns is not
// in it either. A target that reads again what was right of a wrong chain (StepCosts) sends no
// guesses in the step that does; that step counts, too, with the chance that there is one. Tested
// by draft_prediction_test.cc.
#pragma once

#include <cstdint>
#include <span>

#include "plan/cost_curve.h"

namespace outrider::lab {

struct DraftPrediction {
  std::int32_t guesses = 0;  // of a step, >= 1; 0: nothing is known
  double tokens = 0.0;       // of a step, the target's own included
  double ms = 0.0;           // of a step, the guesses included
  double speedup = 0.0;      // beside plain decoding; below 1: it does not pay

  bool pays() const { return speedup > 1.0; }
};

// `chances`: of each guess of a chain, given that those before it are right. REQUIRES: the curve
// is not empty
DraftPrediction predict_draft(const CostCurve& target, std::span<const double> chances,
                              double first_ms, double further_ms, bool reads_again = false);

}  // namespace outrider::lab
