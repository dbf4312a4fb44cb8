// Figures of a made-up target and of texts, for tests of what a drafter costs and gains
// (plan/drafter_account.h and its parts).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/cost_curve.h"
#include "plan/reading_risk.h"

namespace outrider::testing {

inline constexpr double kToken = 70.0;  // ms: what the target takes for a single token

// Single tokens take kToken, and each token beside others takes a fifth of it.
inline CostCurve target() {
  return CostCurve(std::vector<CostPoint>{{.width = 1, .ms = kToken},
                                          {.width = 8, .ms = 2.0 * kToken},
                                          {.width = 16, .ms = 3.6 * kToken}});
}

inline UnreadText unread(std::int64_t tokens, std::int64_t to_come, double expected_share = 0.3) {
  return {
      .tokens = tokens, .to_come = to_come, .worth_ms = kToken, .expected_share = expected_share};
}

}  // namespace outrider::testing
