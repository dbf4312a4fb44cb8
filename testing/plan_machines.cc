#include "testing/plan_machines.h"

#include <array>

namespace outrider::testing {
namespace {

double tiled(std::int32_t width) {
  // Times of one token, by width; in between and beyond in proportion to the last tile.
  constexpr std::array<double, 9> kTimes = {0.0, 1.0, 1.49, 1.81, 1.30, 1.86, 2.20, 2.61, 2.31};
  if (width <= 8) return 72.0 * kTimes[static_cast<std::size_t>(width)];
  return 72.0 * 3.30 * static_cast<double>(width) / 16.0;
}

double gpu(std::int32_t width) { return 8.0 + 3.0 * static_cast<double>((width - 1) / 8); }

double saw(std::int32_t width) {
  return 10.0 + 2.0 * static_cast<double>(width / 3) + 4.0 * static_cast<double>(width % 3);
}

}  // namespace

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
