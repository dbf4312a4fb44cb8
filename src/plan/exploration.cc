#include "plan/exploration.h"

#include <algorithm>

namespace outrider {

bool Exploration::begin(double expected_ms, double token_ms, double elapsed_ms) {
  // What was not used for long does not pay for much exploration at once.
  left_ms_ = std::min(left_ms_, expected_ms);
  const double at_once_ms = std::min(kExploredAtOnce * token_ms, kExploredOfTime * elapsed_ms);
  if (expected_ms > left_ms_ + at_once_ms) return false;
  left_ms_ -= expected_ms;
  return true;
}

}  // namespace outrider
