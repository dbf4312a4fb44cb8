// What passes of a model take, by the number of their tokens.
#pragma once

#include <cstdint>
#include <vector>

namespace outrider {

struct CostPoint {
  std::int32_t width = 1;  // tokens of the pass, >= 1
  double ms = 0.0;         // > 0
};

struct PassCosts {
  std::vector<CostPoint> points;  // of passes as wide as the one before; empty: nothing is known
  // What is added where a pass has another width than the one before: llama.cpp keeps the graph of
  // the last pass alone, and builds another for another width. >= 0.
  double rebuild_ms = 0.0;
};

}  // namespace outrider
