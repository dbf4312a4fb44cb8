#include "lab/bench_statistics.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace outrider::lab {
namespace {

TEST(GeometricMean, IsTheRootOfTheProduct) {
  EXPECT_NEAR(*geometric_mean(std::vector<double>{2.0, 8.0}), 4.0, 1e-12);
  EXPECT_NEAR(*geometric_mean(std::vector<double>{0.5, 2.0}), 1.0, 1e-12);
  EXPECT_NEAR(*geometric_mean(std::vector<double>{1.3}), 1.3, 1e-12);
  EXPECT_FALSE(geometric_mean(std::vector<double>{}).has_value());
}

TEST(InterpolatedQuantile, LiesBetweenTheValuesAroundIt) {
  EXPECT_EQ(interpolated_quantile({100.0, 10.0}, 0.5), 55.0) << "not the lower of two";
  EXPECT_EQ(interpolated_quantile({100.0, 10.0}, 0.75), 77.5);
  EXPECT_EQ(interpolated_quantile({9.0, 1.0, 2.0}, 0.75), 5.5);
  EXPECT_EQ(interpolated_quantile({5.0, 1.0, 2.0, 4.0, 3.0}, 0.25), 2.0);
  EXPECT_EQ(interpolated_quantile({3.0}, 0.75), 3.0);
  EXPECT_EQ(interpolated_quantile({1.0, 2.0}, 0.0), 1.0);
  EXPECT_EQ(interpolated_quantile({1.0, 2.0}, 1.0), 2.0);
}

// The table of any textbook, two-sided 95 %.
TEST(StudentT, IsTheTextbooks) {
  for (const auto& [degrees, t] : std::vector<std::pair<int, double>>{{1, 12.706},
                                                                      {2, 4.303},
                                                                      {5, 2.571},
                                                                      {10, 2.228},
                                                                      {11, 2.201},
                                                                      {12, 2.179},
                                                                      {15, 2.131},
                                                                      {20, 2.086},
                                                                      {30, 2.042},
                                                                      {60, 2.000},
                                                                      {120, 1.980},
                                                                      {10000, 1.960}}) {
    EXPECT_NEAR(student_t(degrees), t, 0.001) << degrees;
  }
}

TEST(RatioInterval, OfKnownData) {
  EXPECT_FALSE(ratio_interval(std::vector<double>{1.2}).has_value());
  const std::optional<Interval> same = ratio_interval(std::vector<double>{1.5, 1.5, 1.5});
  EXPECT_NEAR(same->low, 1.5, 1e-12);
  EXPECT_NEAR(same->high, 1.5, 1e-12);
  // Logarithms -1, 0, 1: mean 0, deviation 1, so t(2) / sqrt(3) on either side.
  const double e = std::exp(1.0);
  const std::optional<Interval> wide = ratio_interval(std::vector<double>{1.0 / e, 1.0, e});
  EXPECT_NEAR(wide->high, std::exp(4.3027 / std::sqrt(3.0)), 1e-3);
  EXPECT_NEAR(wide->low * wide->high, 1.0, 1e-9) << "twice as slow is as far as twice as fast";
}

// The interval holds the truth in 95 of 100 cases, and no more than that: in 4,000 repetitions the
// share is within four standard deviations of it.
TEST(RatioInterval, HoldsTheTruthAsOftenAsItSays) {
  constexpr int kRounds = 4000;
  std::uint64_t state = 7;
  const auto uniform = [&state] {
    return (static_cast<double>(mix64(++state) >> 11) + 0.5) / 9007199254740992.0;
  };
  int holds = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> ratios;
    for (int i = 0; i < 3; ++i) {  // Box and Muller
      const double radius = std::sqrt(-2.0 * std::log(uniform()));
      ratios.push_back(1.3 * std::exp(0.1 * radius * std::cos(6.283185307179586 * uniform())));
    }
    const std::optional<Interval> interval = ratio_interval(ratios);
    holds += interval->low <= 1.3 && 1.3 <= interval->high ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(holds) / kRounds, 0.95, 4.0 * std::sqrt(0.95 * 0.05 / kRounds));
}

}  // namespace
}  // namespace outrider::lab
