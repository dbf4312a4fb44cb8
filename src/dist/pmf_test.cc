#include "dist/pmf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"

namespace outrider {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Probabilities, AreTheObviousOnesToAFewUnitsOfTheLastPlace) {
  std::vector<float> logits;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    logits.push_back(static_cast<float>(1600.0 * noise_uniform(noise_key(1, 2), i) - 1500.0));
  }
  logits[7] = -kInf;
  logits[8] = std::nanf("");
  for (const float scale : {0.01f, 0.5f, 1.0f, 1.7f}) {
    const std::vector<double> p = probabilities({.logits = logits, .scale = scale});
    float top = -kInf;
    for (const float l : logits) top = l > top ? l : top;
    double sum = 0.0;
    for (const float l : logits) {
      const double x =
          static_cast<double>(scale) * (static_cast<double>(l) - static_cast<double>(top));
      if (x > -700.0) sum += std::exp(x);
    }
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double x =
          static_cast<double>(scale) * (static_cast<double>(logits[i]) - static_cast<double>(top));
      const double want = x > -700.0 ? std::exp(x) / sum : 0.0;
      ASSERT_NEAR(p[i], want, 1e-14 * want) << "x " << x;
    }
  }
}

TEST(Probabilities, InfiniteLogitsShareTheMassAndNothingPossibleIsAllZero) {
  const std::vector<float> infinite = {1.0f, kInf, 2.0f, kInf};
  EXPECT_EQ(probabilities({.logits = infinite}), (std::vector<double>{0.0, 0.5, 0.0, 0.5}));
  const std::vector<float> never = {-kInf, std::nanf(""), -kInf};
  EXPECT_EQ(probabilities({.logits = never}), (std::vector<double>{0.0, 0.0, 0.0}));
}

TEST(Pmf, SparseEntriesAreFoundByTheirIdsInAnyOrder) {
  const std::vector<float> logits = {0.0f, 1.0f, -kInf, 2.0f};
  const std::vector<Token> tokens = {40, 7, 3, 12};
  const Pmf p = Pmf::of({.logits = logits, .tokens = tokens});
  EXPECT_EQ(p.size(), 3U);
  const double z = 1.0 + std::exp(1.0) + std::exp(2.0);
  EXPECT_NEAR(p.at(40), 1.0 / z, 1e-15);
  EXPECT_NEAR(p.at(12), std::exp(2.0) / z, 1e-15);
  EXPECT_EQ(p.at(3), 0.0);
  EXPECT_EQ(p.at(99), 0.0);
  EXPECT_NEAR(p.total(), 1.0, 1e-15);
}

TEST(Pmf, ResidualsAreTakenByIdForEveryMixtureOfDenseAndSparse) {
  const std::vector<float> q_row = {0.0f, 1.0f, 0.5f, -1.0f};
  const std::vector<float> p_row = {1.0f, 0.0f, 0.5f, 2.0f};
  const std::vector<Token> order = {2, 0, 3, 1};
  std::vector<float> q_mixed, p_mixed;
  for (const Token t : order) {
    q_mixed.push_back(q_row[static_cast<std::size_t>(t)]);
    p_mixed.push_back(p_row[static_cast<std::size_t>(t)]);
  }
  const Pmf dense_q = Pmf::of({.logits = q_row});
  const Pmf dense_p = Pmf::of({.logits = p_row});
  const Pmf sparse_q = Pmf::of({.logits = q_mixed, .tokens = order});
  const Pmf sparse_p = Pmf::of({.logits = p_mixed, .tokens = order});
  for (const Pmf& q : {dense_q, sparse_q}) {
    for (const Pmf& p : {dense_p, sparse_p}) {
      const Pmf rest = Pmf::residual(q, p, 0.9);
      for (Token t = 0; t < 4; ++t) {
        EXPECT_NEAR(rest.at(t), std::max(0.9 * dense_q.at(t) - dense_p.at(t), 0.0), 1e-15);
      }
    }
  }
}

TEST(Pmf, ARowShorterThanTheOtherCountsAsImpossibleBeyondItsEnd) {
  const std::vector<float> longer = {0.0f, 0.0f, 0.0f};
  const std::vector<float> shorter = {0.0f, 0.0f};
  const Pmf rest = Pmf::residual(Pmf::of({.logits = longer}), Pmf::of({.logits = shorter}));
  EXPECT_NEAR(rest.at(2), 1.0 / 3.0, 1e-15);
  EXPECT_EQ(rest.at(0), 0.0);
}

}  // namespace
}  // namespace outrider
