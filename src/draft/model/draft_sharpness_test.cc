#include "draft/model/draft_sharpness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "dist/gumbel.h"

namespace outrider {
namespace {

// A made-up pair: log p of eight tokens, and log q = a log p + errors.
struct World {
  double a = 1.0;
  double errors = 0.5;
  std::uint64_t n = 0;
  std::uint64_t right = 0;
  std::uint64_t guesses = 0;

  double uniform(std::uint32_t i) { return noise_uniform(noise_key(77, n), i); }
  double normal(std::uint32_t i) {
    return std::sqrt(-2.0 * std::log(uniform(2 * i))) * std::cos(6.283185307 * uniform(2 * i + 1));
  }

  // A guess, scaled by `factor`, and what the target says.
  DraftRivals guess(double factor, Token* said) {
    ++n;
    std::vector<float> log_p(8);
    std::vector<float> log_q(8);
    for (std::uint32_t i = 0; i < 8; ++i) {
      log_p[i] = static_cast<float>(1.5 * normal(i));
      log_q[i] = static_cast<float>(a * log_p[i] + errors * normal(8 + i));
    }
    const NoiseKey key = noise_key(5, n);
    *said = perturbed_argmax({.logits = log_q}, key);
    const std::vector<PerturbedChoice> best =
        perturbed_top({.logits = log_p, .scale = static_cast<float>(factor)}, key, 2);
    right += best[0].token == *said ? 1 : 0;
    ++guesses;
    const double noise_lead = gumbel_noise(key, best[0].token) - gumbel_noise(key, best[1].token);
    return {best[0].token, best[1].token, (best[0].score - best[1].score - noise_lead) / factor,
            noise_lead};
  }
};

double learned(World& world, int n) {
  DraftSharpness sharpness;
  for (int i = 0; i < n; ++i) {
    Token said = kNoToken;
    const DraftRivals rivals = world.guess(static_cast<double>(sharpness.factor()), &said);
    sharpness.learn(rivals, said);
  }
  return static_cast<double>(sharpness.factor());
}

TEST(DraftSharpness, FindsTheScaleOfAMadeUpPair) {
  for (const double a : {0.7, 1.0, 1.2, 1.5}) {
    World world{.a = a};
    EXPECT_NEAR(learned(world, 20000), a, 0.08) << a;
  }
}

TEST(DraftSharpness, GuessesHoldMoreOftenWithIt) {
  for (const double a : {0.6, 1.6}) {
    World plain{.a = a};
    World scaled{.a = a};
    const double factor = learned(scaled, 5000);
    scaled.right = scaled.guesses = 0;
    for (int i = 0; i < 20000; ++i) {
      Token said = kNoToken;
      (void)plain.guess(1.0, &said);
      (void)scaled.guess(factor, &said);
    }
    EXPECT_GT(scaled.right, plain.right + 200) << a;
  }
}

TEST(DraftSharpness, AFewHundredGuessesAreEnoughToBeNear) {
  World world{.a = 1.4};
  EXPECT_NEAR(learned(world, 400), 1.4, 0.25);
}

TEST(DraftSharpness, LearnsNothingFromWhatSaysNothing) {
  DraftSharpness sharpness;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  sharpness.learn({}, 3);
  sharpness.learn({1, 2, 3.0, -2.0}, 9);  // neither of them
  sharpness.learn({1, 2, nan, 0.0}, 1);
  sharpness.learn({1, 2, infinity, 0.0}, 2);
  sharpness.learn({1, 2, 1.0, nan}, 2);
  EXPECT_EQ(sharpness.factor(), 1.0f);
  EXPECT_EQ(sharpness.numbers(), DraftSharpness().numbers());
}

TEST(DraftSharpness, StaysWhereItIsWhileEveryGuessHolds) {
  DraftSharpness sharpness;
  for (int i = 0; i < 1000; ++i) sharpness.learn({1, 2, 1.0, -0.9}, 1);
  EXPECT_EQ(sharpness.factor(), 1.0f);
}

TEST(DraftSharpness, StaysInItsRangeWhateverIsSaid) {
  DraftSharpness low;
  DraftSharpness high;
  for (int i = 0; i < 100000; ++i) {
    high.learn({1, 2, -2.0, 3.0}, 2);
    low.learn({1, 2, 2.0, -1.0}, 2);
  }
  EXPECT_GE(static_cast<double>(low.factor()), DraftSharpness::kLeast);
  EXPECT_LT(low.factor(), 0.8f);
  EXPECT_LE(static_cast<double>(high.factor()), DraftSharpness::kMost);
  EXPECT_GT(high.factor(), 1.1f);
}

TEST(DraftSharpness, IsRecalled) {
  World world{.a = 1.3};
  DraftSharpness before;
  for (int i = 0; i < 3000; ++i) {
    Token said = kNoToken;
    const DraftRivals rivals = world.guess(static_cast<double>(before.factor()), &said);
    before.learn(rivals, said);
  }
  DraftSharpness after;
  after.recall(before.numbers());
  EXPECT_EQ(after.factor(), before.factor());
  for (const std::vector<double>& wrong : {std::vector<double>{},
                                           {1.0},
                                           {0.1, 50.0},
                                           {9.0, 50.0},
                                           {1.0, 1e9},
                                           {1.0, -5.0},
                                           {std::nan(""), 50.0},
                                           {1.2, std::nan("")},
                                           {1.2, 50.0, 1.0}}) {
    after.recall(wrong);
    EXPECT_EQ(after.numbers(), before.numbers());
  }
}

}  // namespace
}  // namespace outrider
