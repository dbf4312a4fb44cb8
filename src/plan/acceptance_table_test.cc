#include "plan/acceptance_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "plan/calibration_score.h"
#include "testing/chi_square.h"

namespace outrider {
namespace {

// A number in [0, 1).
double uniform(std::uint64_t& state) { return static_cast<double>(mix64(++state) >> 11) * 0x1p-53; }

TEST(AcceptanceTable, AtFirstADrafterIsTakenAtItsWord) {
  const AcceptanceTable table;
  for (const float confidence : {0.1f, 0.5f, 0.9f}) {
    EXPECT_NEAR(table.chance({.drafter = 0, .depth = 1, .confidence = confidence}),
                static_cast<double>(confidence), 1e-6);
  }
}

// Drafters whose word is off in every direction, deeper guesses worse than early ones.
TEST(AcceptanceTable, ChancesComeTrueWhateverADrafterSays) {
  std::uint64_t state = testing::test_seed(3);
  for (const double power : {0.3, 1.0, 3.0}) {
    AcceptanceTable table;
    CalibrationScore score;
    for (int i = 0; i < 20000; ++i) {
      const double said = uniform(state);
      const std::int32_t depth = 1 + static_cast<std::int32_t>(mix64(++state) % 5);
      const double truth = std::pow(said, power) * (1.0 - 0.1 * static_cast<double>(depth - 1));
      const GuessClaim claim{.drafter = 2, .depth = depth, .confidence = static_cast<float>(said)};
      const bool right = uniform(state) < truth;
      if (i > 4000) score.add(depth, table.chance(claim), right);
      table.learn(claim, right);
    }
    EXPECT_LT(score.calibration_error(), 0.03) << "power " << power;
    EXPECT_LT(score.brier(), score.brier_of_means() * 0.95) << "power " << power;
  }
}

TEST(AcceptanceTable, DraftersAreKeptApartAndForgotten) {
  AcceptanceTable table;
  const GuessClaim first{.drafter = 0, .depth = 1, .confidence = 0.5f};
  const GuessClaim second{.drafter = 1, .depth = 1, .confidence = 0.5f};
  for (int i = 0; i < 200; ++i) {
    table.learn(first, true);
    table.learn_prediction(0, 1, true);
  }
  EXPECT_GT(table.chance(first), 0.9);
  EXPECT_NEAR(table.chance(second), 0.5, 1e-6);
  EXPECT_GT(table.prediction(0, 1), 0.9);
  EXPECT_NEAR(table.prediction(1, 1), 0.6, 1e-6);
  table.forget(0);
  EXPECT_NEAR(table.chance(first), 0.5, 1e-6);
  EXPECT_NEAR(table.prediction(0, 1), 0.6, 1e-6);
}

TEST(AcceptanceTable, AChangeIsFollowed) {
  AcceptanceTable table;
  for (int i = 0; i < 5000; ++i) table.learn_prediction(0, 1, true);
  for (int i = 0; i < 200; ++i) table.learn_prediction(0, 1, false);
  EXPECT_LT(table.prediction(0, 1), 0.2);
}

TEST(AcceptanceTable, ADrafterWasEverRightFromItsFirstHitOn) {
  AcceptanceTable table;
  const GuessClaim claim{.drafter = 1, .depth = 2, .confidence = 0.5f};
  for (int i = 0; i < 50; ++i) table.learn(claim, false);
  EXPECT_FALSE(table.ever_right(1));
  table.learn({.drafter = 1, .depth = 1, .confidence = 0.1f}, true);
  EXPECT_TRUE(table.ever_right(1));
  EXPECT_FALSE(table.ever_right(0)) << "another one";
  for (int i = 0; i < 5000; ++i) table.learn(claim, false);
  EXPECT_TRUE(table.ever_right(1));
  AcceptanceTable next_run;
  ASSERT_TRUE(next_run.recall(0, table.numbers(1)));
  EXPECT_TRUE(next_run.ever_right(0));
  table.forget(1);
  EXPECT_FALSE(table.ever_right(1));
}

// Little was seen: it may well be better than it looks. Much was seen: hardly.
TEST(AcceptanceTable, HopeShrinksWithExperience) {
  AcceptanceTable table;
  const double at_first = table.upper_prediction(0, 1) - table.prediction(0, 1);
  for (int i = 0; i < 60; ++i) table.learn_prediction(0, 1, i % 2 == 0);
  const double later = table.upper_prediction(0, 1) - table.prediction(0, 1);
  EXPECT_GT(at_first, 0.2);
  EXPECT_LT(later, 0.5 * at_first);
  EXPECT_GT(later, 0.0);
}

TEST(AcceptanceTable, WhatIsOutOfRangeIsHarmless) {
  AcceptanceTable table;
  AcceptanceBias bias;
  for (const float confidence : {-1.0f, 0.0f, 1.0f, 7.0f, std::nanf("")}) {
    const GuessClaim claim{.drafter = 0, .depth = 1000, .confidence = confidence};
    table.learn(claim, true);
    const double chance = table.chance(claim);
    EXPECT_TRUE(chance > 0.0 && chance < 1.0) << confidence;
    EXPECT_TRUE(bias.shifted(0, chance) > 0.0 && bias.shifted(0, chance) < 1.0);
  }
}

TEST(AcceptanceBias, FollowsOneRequestWithinBounds) {
  AcceptanceBias bias;
  for (int i = 0; i < 400; ++i) bias.learn(0, bias.shifted(0, 0.5), false);
  EXPECT_LT(bias.shifted(0, 0.5), 0.2);
  EXPECT_NEAR(bias.shifted(1, 0.5), 0.5, 1e-9) << "another drafter's";
  for (int i = 0; i < 4000; ++i) bias.learn(0, bias.shifted(0, 0.5), true);
  EXPECT_GT(bias.shifted(0, 0.5), 0.8);
}

}  // namespace
}  // namespace outrider
