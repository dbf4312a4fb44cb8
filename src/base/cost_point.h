// What a pass of a model with so many tokens took.
#pragma once

#include <cstdint>

namespace outrider {

struct CostPoint {
  std::int32_t width = 1;  // tokens of the pass, >= 1
  double ms = 0.0;         // > 0
};

}  // namespace outrider
