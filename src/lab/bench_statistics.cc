#include "lab/bench_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace outrider::lab {
namespace {

double mean_log(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += std::log(value);
  return sum / static_cast<double>(values.size());
}

}  // namespace

std::optional<double> geometric_mean(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  return std::exp(mean_log(values));
}

double interpolated_quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double rank = share * static_cast<double>(values.size() - 1);
  const std::size_t below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (rank - static_cast<double>(below)) * (values[above] - values[below]);
}

// A table for few degrees, beyond it the expansion by Fisher and Cornish (1960).
double student_t(int degrees) {
  constexpr std::array<double, 10> kFew = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706,
                                           2.4469,  2.3646, 2.3060, 2.2622, 2.2281};
  if (degrees <= static_cast<int>(kFew.size())) return kFew[static_cast<std::size_t>(degrees - 1)];
  const double z = 1.959964;
  const double n = degrees;
  const double z3 = z * z * z;
  const double z5 = z3 * z * z;
  return z + (z3 + z) / (4.0 * n) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n) +
         (3.0 * z5 * z * z + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n * n * n);
}

std::optional<Interval> ratio_interval(std::span<const double> ratios) {
  if (ratios.size() < 2) return std::nullopt;
  const double n = static_cast<double>(ratios.size());
  const double mean = mean_log(ratios);
  double squares = 0.0;
  for (const double ratio : ratios) squares += std::pow(std::log(ratio) - mean, 2.0);
  const double half =
      student_t(static_cast<int>(ratios.size()) - 1) * std::sqrt(squares / (n - 1.0) / n);
  return Interval{.low = std::exp(mean - half), .high = std::exp(mean + half)};
}

}  // namespace outrider::lab
