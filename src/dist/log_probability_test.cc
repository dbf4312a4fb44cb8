#include "dist/log_probability.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/types.h"
#include "testing/chi_square.h"

namespace outrider {
namespace {

double obvious(const std::vector<float>& row) {
  double best = kRuledOut;
  for (const float value : row) best = value > best ? value : best;
  double sum = 0.0;
  for (const float value : row) {
    if (!std::isnan(value)) sum += std::exp(static_cast<double>(value) - best);
  }
  return best + std::log(sum);
}

TEST(LogProbability, TheSumIsTheObviousOne) {
  std::mt19937 random(static_cast<unsigned>(testing::test_seed(17)));
  for (const float spread : {0.0f, 0.01f, 3.0f, 30.0f, 300.0f}) {
    for (const std::size_t n : {1, 2, 15, 16, 17, 1023, 1024, 1025, 49152}) {
      std::normal_distribution<float> normal(-5.0f, spread + 1e-9f);
      std::vector<float> row(n);
      for (float& value : row) value = normal(random);
      EXPECT_NEAR(log_sum_exp(row), obvious(row), 1e-6 * (1.0 + std::fabs(obvious(row))))
          << n << " values, spread " << spread;
      for (const float scale : {0.5f, 1.0f / 0.7f}) {
        std::vector<float> scaled = row;
        for (float& value : scaled) value *= scale;
        EXPECT_NEAR(log_sum_exp(row, scale), obvious(scaled),
                    2e-6 * (1.0 + std::fabs(obvious(scaled))));
      }
      if (n < 3) continue;
      row[n / 2] = kRuledOut;
      row[n / 3] = std::nanf("");
      EXPECT_NEAR(log_sum_exp(row), obvious(row), 1e-6 * (1.0 + std::fabs(obvious(row))));
    }
  }
}

TEST(LogProbability, NothingPossibleAndCertaintyHaveTheirValues) {
  EXPECT_EQ(log_sum_exp({}), kRuledOut);
  EXPECT_EQ(log_sum_exp(std::vector<float>{kRuledOut, std::nanf("")}), kRuledOut);
  EXPECT_EQ(log_sum_exp(std::vector<float>{1.0f, -kRuledOut}), -kRuledOut);
  EXPECT_DOUBLE_EQ(log_sum_exp(std::vector<float>{kRuledOut, 2.0f}), 2.0);
}

TEST(LogProbability, TheLikeliestAreInOrderAndTiesByTheSmallerId) {
  const std::vector<float> row = {1.0f, 3.0f, kRuledOut, 3.0f, 2.0f, std::nanf("")};
  EXPECT_EQ(likeliest(row, 3), (std::vector<Token>{1, 3, 4}));
  EXPECT_EQ(likeliest(row, 0), std::vector<Token>{});
  EXPECT_EQ(likeliest(row, 20), (std::vector<Token>{1, 3, 4, 0}));
  std::mt19937 random(static_cast<unsigned>(testing::test_seed(18)));
  for (int round = 0; round < 200; ++round) {
    std::vector<float> values(1 + random() % 300);
    for (float& value : values) value = static_cast<float>(random() % 50);
    std::vector<Token> all(values.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Token>(i);
    std::stable_sort(all.begin(), all.end(), [&](Token a, Token b) {
      return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
    });
    all.resize(std::min<std::size_t>(all.size(), 20));
    EXPECT_EQ(likeliest(values, 20), all);
  }
}

}  // namespace
}  // namespace outrider
