#include "dist/gumbel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "testing/chi_square.h"

namespace outrider {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::size_t n, std::uint64_t seed, float spread) {
  std::vector<float> logits(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double u = noise_uniform(noise_key(seed, i, 9), 0);
    logits[i] = spread * static_cast<float>(std::log(u / (1.0 - u)));
  }
  return logits;
}

TEST(Gumbel, BoundedSearchEqualsTheObviousLoop) {
  const std::uint64_t seed = testing::test_seed(1);
  for (std::uint64_t round = 0; round < 400; ++round) {
    const std::size_t n = 257 + noise_bits(noise_key(seed, round), 0) % 3000;
    const float spread = 0.1f + 0.05f * static_cast<float>(round % 100);
    std::vector<float> logits = random_logits(n, seed + round, spread);
    if (round % 3 == 0) {
      for (std::size_t i = 0; i < n; i += 1 + round % 7) logits[i] = -kInf;
    }
    if (round % 5 == 0) logits[round % n] = std::nanf("");
    const float offset = round % 4 == 0 ? 1000.0f : -30.0f;
    for (float& l : logits) l += offset;
    const Distribution q{.logits = logits, .scale = round % 2 == 0 ? 1.0f : 1.3f};
    for (const std::size_t count : {1U, 2U, 5U, 40U}) {
      const NoiseKey key = noise_key(seed + round, count);
      const std::vector<PerturbedChoice> fast = perturbed_top(q, key, count);
      const std::vector<PerturbedChoice> slow = perturbed_top_reference(q, key, count);
      ASSERT_EQ(fast.size(), slow.size()) << "round " << round;
      for (std::size_t i = 0; i < fast.size(); ++i) {
        ASSERT_EQ(fast[i].token, slow[i].token) << "round " << round << ", place " << i;
        ASSERT_EQ(fast[i].score, slow[i].score) << "round " << round << ", place " << i;
      }
    }
  }
}

TEST(Gumbel, RareNoiseWordsOfZeroAreNotLost) {
  // Equal logits: the winner is the token with the smallest v, so small words must be exact.
  const std::vector<float> logits(300000, 0.0f);
  for (std::uint64_t p = 0; p < 30; ++p) {
    const NoiseKey key = noise_key(77, p);
    const std::vector<PerturbedChoice> slow = perturbed_top_reference({.logits = logits}, key, 1);
    ASSERT_EQ(perturbed_argmax({.logits = logits}, key), slow[0].token);
  }
}

TEST(Gumbel, AMillionDrawsFitTheDistribution) {
  const std::uint64_t seed = testing::test_seed(20261121);
  const std::vector<float> logits = {0.0f, 1.0f, -1.0f, 2.0f, -kInf, 0.5f, -6.0f};
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    const Distribution q{.logits = logits, .scale = 1.0f / temperature};
    std::vector<std::int64_t> counts(logits.size(), 0);
    for (std::uint64_t position = 0; position < 1000000; ++position) {
      ++counts[static_cast<std::size_t>(perturbed_argmax(q, noise_key(seed, position)))];
    }
    EXPECT_GT(testing::chi_square_p(counts, probabilities(q)), testing::least_p())
        << "T " << temperature;
  }
}

TEST(Gumbel, AMillionDrawsOverSeedsFitToo) {
  const std::uint64_t seed = testing::test_seed(4);
  const std::vector<float> logits = {0.3f, -0.2f, 1.5f, 0.0f};
  std::vector<std::int64_t> counts(logits.size(), 0);
  for (std::uint64_t i = 0; i < 1000000; ++i) {
    ++counts[static_cast<std::size_t>(
        perturbed_argmax({.logits = logits}, noise_key(seed + i, 3)))];
  }
  EXPECT_GT(testing::chi_square_p(counts, probabilities({.logits = logits})), testing::least_p());
}

TEST(Gumbel, TheLargeVocabularyPathDrawsFromTheDistributionAsWell) {
  const std::uint64_t seed = testing::test_seed(5);
  std::vector<float> logits(1024, -2.0f);
  for (std::size_t i = 0; i < 10; ++i) logits[i * 100] = 1.0f + 0.3f * static_cast<float>(i);
  std::vector<std::int64_t> counts(logits.size(), 0);
  for (std::uint64_t position = 0; position < 300000; ++position) {
    ++counts[static_cast<std::size_t>(
        perturbed_argmax({.logits = logits}, noise_key(seed, position)))];
  }
  EXPECT_GT(testing::chi_square_p(counts, probabilities({.logits = logits})), testing::least_p());
}

TEST(Gumbel, TwoPositionsAreIndependent) {
  const std::uint64_t seed = testing::test_seed(6);
  const std::vector<float> logits = {0.0f, 0.7f, -0.5f, 1.1f};
  std::vector<std::vector<std::int64_t>> next(4, std::vector<std::int64_t>(4, 0));
  std::vector<std::vector<std::int64_t>> far = next;
  for (std::uint64_t i = 0; i < 1000000; ++i) {
    const Distribution q{.logits = logits};
    const std::size_t here = static_cast<std::size_t>(perturbed_argmax(q, noise_key(seed + i, 10)));
    ++next[here][static_cast<std::size_t>(perturbed_argmax(q, noise_key(seed + i, 11)))];
    ++far[here][static_cast<std::size_t>(perturbed_argmax(q, noise_key(seed + i, 4106)))];
  }
  EXPECT_GT(testing::chi_square_independence_p(next), testing::least_p());
  EXPECT_GT(testing::chi_square_independence_p(far), testing::least_p());
}

TEST(Gumbel, ADependentPairWouldBeNoticed) {
  // The negative control of the test above: the same noise at both positions.
  const std::vector<float> logits = {0.0f, 0.7f, -0.5f, 1.1f};
  std::vector<std::vector<std::int64_t>> table(4, std::vector<std::int64_t>(4, 0));
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const std::size_t t =
        static_cast<std::size_t>(perturbed_argmax({.logits = logits}, noise_key(i, 10)));
    ++table[t][t];
  }
  EXPECT_LT(testing::chi_square_independence_p(table), 1e-9);
}

TEST(Gumbel, ChancesThatAreOffByAHundredthAreNoticedWithAnySeed) {
  // The negative control of what is above 10^-6 with a soak's seeds (testing::least_p).
  const std::uint64_t seed = testing::test_seed(8);
  const std::vector<float> logits = {0.3f, -0.2f, 1.5f, 0.0f};
  const std::vector<float> other = {0.35f, -0.2f, 1.5f, 0.0f};
  std::vector<std::int64_t> counts(logits.size(), 0);
  for (std::uint64_t i = 0; i < 1000000; ++i) {
    ++counts[static_cast<std::size_t>(perturbed_argmax({.logits = other}, noise_key(seed + i, 3)))];
  }
  EXPECT_LT(testing::chi_square_p(counts, probabilities({.logits = logits})), 1e-6);
}

TEST(Gumbel, RunnersUpAreASampleWithoutReplacement) {
  const std::uint64_t seed = testing::test_seed(7);
  const std::vector<float> logits = {0.0f, 1.0f, -1.0f};
  const std::vector<double> p = probabilities({.logits = logits});
  std::vector<std::int64_t> counts(9, 0);
  std::vector<double> expected(9, 0.0);
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 3; ++b) {
      if (a != b) expected[a * 3 + b] = p[a] * p[b] / (1.0 - p[a]);
    }
  }
  for (std::uint64_t i = 0; i < 300000; ++i) {
    const std::vector<PerturbedChoice> top =
        perturbed_top({.logits = logits}, noise_key(seed, i), 2);
    ++counts[static_cast<std::size_t>(top[0].token * 3 + top[1].token)];
  }
  EXPECT_GT(testing::chi_square_p(counts, expected), testing::least_p());
}

TEST(Gumbel, CoupledDrawsAgreeAtLeastAsOftenAsTheBoundSays) {
  const std::vector<float> q = {0.0f, 1.0f, -1.0f, 0.5f};
  const std::vector<float> p = {0.4f, 0.6f, -0.5f, 0.0f};
  const std::vector<double> qp = probabilities({.logits = q});
  const std::vector<double> pp = probabilities({.logits = p});
  double tv = 0.0;
  for (std::size_t i = 0; i < 4; ++i) tv += 0.5 * std::fabs(qp[i] - pp[i]);
  int agree = 0;
  constexpr int kDraws = 200000;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const NoiseKey key = noise_key(8, i);
    agree += perturbed_argmax({.logits = q}, key) == perturbed_argmax({.logits = p}, key) ? 1 : 0;
  }
  EXPECT_GT(static_cast<double>(agree) / kDraws, (1.0 - tv) / (1.0 + tv) - 0.005);
}

TEST(Gumbel, SparseEntriesInAnyOrderGiveTheSameToken) {
  const std::vector<float> a = {1.0f, 2.0f, 0.5f};
  const std::vector<Token> ta = {10, 20, 30};
  const std::vector<float> b = {0.5f, 1.0f, 2.0f};
  const std::vector<Token> tb = {30, 10, 20};
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const NoiseKey key = noise_key(1, i);
    ASSERT_EQ(perturbed_argmax({.logits = a, .tokens = ta}, key),
              perturbed_argmax({.logits = b, .tokens = tb}, key));
  }
}

TEST(Gumbel, OneCandidateIsAlwaysTakenAndNoneIsSaidToBeNone) {
  const std::vector<float> one = {-3.0f};
  const std::vector<Token> id = {123};
  EXPECT_EQ(perturbed_argmax({.logits = one, .tokens = id}, noise_key(1, 1)), 123);
  EXPECT_EQ(perturbed_argmax({}, noise_key(1, 1)), kNoToken);
  const std::vector<float> never(1000, -kInf);
  EXPECT_EQ(perturbed_argmax({.logits = never}, noise_key(1, 1)), kNoToken);
}

TEST(Distribution, ArgmaxTakesTheFirstAmongEqualsAndPassesOverNaN) {
  std::vector<float> logits(100, -1.0f);
  logits[37] = 5.0f;
  logits[91] = 5.0f;
  logits[3] = std::nanf("");
  EXPECT_EQ(argmax(logits), 37);
  EXPECT_EQ(argmax(std::vector<float>(50, -kInf)), -1);
  EXPECT_EQ(argmax(std::vector<float>()), -1);
  EXPECT_EQ(argmax(std::vector<float>{1.0f, 3.0f, 2.0f}), 1);
}

TEST(Distribution, ProbabilitiesSumToOneAndFollowTheScale) {
  const std::vector<float> logits = {0.0f, std::log(2.0f), -kInf};
  const std::vector<double> p = probabilities({.logits = logits});
  EXPECT_NEAR(p[0], 1.0 / 3.0, 1e-7);
  EXPECT_NEAR(p[1], 2.0 / 3.0, 1e-7);
  EXPECT_EQ(p[2], 0.0);
  const std::vector<double> sharp = probabilities({.logits = logits, .scale = 2.0f});
  EXPECT_NEAR(sharp[1], 0.8, 1e-6);
}

}  // namespace
}  // namespace outrider
