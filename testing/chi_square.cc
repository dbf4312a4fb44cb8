#include "testing/chi_square.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace outrider::testing {
namespace {

// Regularised upper incomplete gamma function Q(a, x): series below a + 1, else Lentz's continued
// fraction (Abramowitz and Stegun 6.5.29 and 6.5.31).
double gamma_q(double a, double x) {
  if (x <= 0.0) return 1.0;
  const double front = std::exp(-x + a * std::log(x) - std::lgamma(a));
  if (x < a + 1.0) {
    double term = 1.0 / a;
    double sum = term;
    for (int n = 1; n < 10000 && std::fabs(term) > 1e-15 * std::fabs(sum); ++n) {
      term *= x / (a + n);
      sum += term;
    }
    return 1.0 - sum * front;
  }
  constexpr double kTiny = 1e-300;
  double b = x + 1.0 - a;
  double c = 1.0 / kTiny;
  double d = 1.0 / b;
  double h = d;
  for (int n = 1; n < 10000; ++n) {
    const double an = -n * (n - a);
    b += 2.0;
    d = an * d + b;
    if (std::fabs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::fabs(c) < kTiny) c = kTiny;
    d = 1.0 / d;
    h *= d * c;
    if (std::fabs(d * c - 1.0) < 1e-15) break;
  }
  return front * h;
}

}  // namespace

double chi_square_p(const std::vector<std::int64_t>& counts,
                    const std::vector<double>& probabilities) {
  double total = 0.0;
  for (const std::int64_t n : counts) total += static_cast<double>(n);
  double statistic = 0.0;
  double rare_expected = 0.0;
  double rare_count = 0.0;
  int cells = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double n = static_cast<double>(counts[i]);
    const double expected = probabilities[i] * total;
    if (probabilities[i] == 0.0) {
      if (counts[i] != 0) return 0.0;
      continue;
    }
    if (expected < 5.0) {
      rare_expected += expected;
      rare_count += n;
      continue;
    }
    statistic += (n - expected) * (n - expected) / expected;
    ++cells;
  }
  if (rare_expected >= 5.0) {
    statistic += (rare_count - rare_expected) * (rare_count - rare_expected) / rare_expected;
    ++cells;
  }
  return cells < 2 ? 1.0 : gamma_q((cells - 1) / 2.0, statistic / 2.0);
}

double chi_square_independence_p(const std::vector<std::vector<std::int64_t>>& table) {
  const std::size_t n_rows = table.size();
  const std::size_t n_columns = table.front().size();
  std::vector<double> row(n_rows, 0.0), column(n_columns, 0.0);
  double total = 0.0;
  for (std::size_t r = 0; r < n_rows; ++r) {
    for (std::size_t c = 0; c < n_columns; ++c) {
      const double n = static_cast<double>(table[r][c]);
      row[r] += n;
      column[c] += n;
      total += n;
    }
  }
  double statistic = 0.0;
  for (std::size_t r = 0; r < n_rows; ++r) {
    for (std::size_t c = 0; c < n_columns; ++c) {
      const double expected = row[r] * column[c] / total;
      if (expected == 0.0) continue;
      const double difference = static_cast<double>(table[r][c]) - expected;
      statistic += difference * difference / expected;
    }
  }
  return gamma_q(static_cast<double>((n_rows - 1) * (n_columns - 1)) / 2.0, statistic / 2.0);
}

double least_p() { return std::getenv("OUTRIDER_TEST_SEED") != nullptr ? 1e-6 : 0.001; }

std::uint64_t test_seed(std::uint64_t fallback) {
  const char* given = std::getenv("OUTRIDER_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : fallback;
  std::printf("OUTRIDER_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace outrider::testing
