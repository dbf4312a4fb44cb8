#include "testing/plan_machines.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace outrider::testing {
namespace {

double tiled(std::int32_t width) {
  // Times of one token, by width; in between and beyond in proportion to the last tile.
  constexpr std::array<double, 9> kTimes = {0.0, 1.0, 1.49, 1.81, 1.30, 1.86, 2.20, 2.61, 2.31};
  if (width <= 8) return 72.0 * kTimes[static_cast<std::size_t>(width)];
  return 72.0 * 3.30 * static_cast<double>(width) / 16.0;
}

double gpu(std::int32_t width) { return 8.0 + 3.0 * std::floor((width - 1) / 8.0); }

double saw(std::int32_t width) {
  return 10.0 + 2.0 * std::floor(width / 3.0) + 4.0 * static_cast<double>(width % 3);
}

double zen4(std::int32_t width) {
  // Times of one token, by width; straight lines between and beyond.
  struct Point {
    double width;
    double ms;
  };
  constexpr std::array<Point, 6> kPoints = {
      {{1, 1.0}, {2, 1.04}, {3, 1.1}, {4, 1.26}, {8, 2.05}, {16, 3.7}}};
  std::size_t above = 1;
  while (above + 1 < kPoints.size() && kPoints[above].width < width) ++above;
  const Point low = kPoints[above - 1];
  const Point high = kPoints[above];
  const double slope = (high.ms - low.ms) / (high.width - low.width);
  return 30.0 * (low.ms + slope * (std::max(1, width) - low.width));
}

}  // namespace

PlanMachine zen4_own_kernels() { return {.name = "zen4", .ms = zen4}; }

std::vector<PlanMachine> plan_machines() {
  return {
      {.name = "flat", .ms = [](std::int32_t) { return 20.0; }},
      {.name = "linear", .ms = [](std::int32_t width) { return 10.0 * width; }},
      {.name = "tiled", .ms = tiled},
      {.name = "gpu", .ms = gpu},
      {.name = "saw", .ms = saw},
      {.name = "steep", .ms = [](std::int32_t width) { return 10.0 + 25.0 * (width - 1); }},
  };
}

}  // namespace outrider::testing
