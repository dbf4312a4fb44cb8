// The widths of steps at which texts are compared with plain decoding's, and whether there were
// steps of these widths.
#pragma once

#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "engine/request.h"

namespace outrider::testing {

// At temperature 0 every drafter is tried at each width from 1 to this (docs/reliability.md).
inline constexpr std::int32_t kWidestCompared = 16;

// These widths. At other temperatures, and with most of many prompts, a few are tried, which
// takes a fraction of the time.
inline std::vector<std::int32_t> every_width() {
  std::vector<std::int32_t> widths(kWidestCompared);
  std::iota(widths.begin(), widths.end(), 1);
  return widths;
}

// The widths that steps had. A drafter may propose less than it is asked for; an equal text then
// says nothing of the width that was asked for.
class SeenWidths {
 public:
  // What became of a request for `width`.
  void add(std::int32_t width, const SpeculationStats& stats) {
    if (std::ssize(stats.steps_by_width) == width + 1) widths_.insert(width);  // of the widest step
  }

  // Those from 1 to `widest` for which no request had a step as wide, as "3 16".
  std::string missing(std::int32_t widest = kWidestCompared) const {
    std::string list;
    for (std::int32_t width = 1; width <= widest; ++width) {
      if (widths_.count(width) == 0) list += (list.empty() ? "" : " ") + std::to_string(width);
    }
    return list;
  }

 private:
  std::set<std::int32_t> widths_;
};

}  // namespace outrider::testing
