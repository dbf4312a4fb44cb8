#include "plan/gain_shares.h"

#include <gtest/gtest.h>

#include "testing/drafter_figures.h"

namespace outrider {
namespace {

using testing::kToken;

// `of_token` of a token's plain time was gained, in a step that gave `tokens`.
DrafterGain gain(double of_token, std::int64_t tokens, std::int32_t n_ready = 1,
                 bool drawn = false) {
  return {.expected_ms = of_token * kToken,
          .tokens = tokens,
          .n_ready = n_ready,
          .drawn = drawn,
          .worth_ms = kToken,
          .token_ms = kToken};
}

TEST(GainShares, WhatIsExpectedCountsUntilItWasSeen) {
  GainShares gains;
  EXPECT_DOUBLE_EQ(gains.share(1, false, 0.3), 0.3);
  gains.note_gain(gain(0.8, 8));
  EXPECT_DOUBLE_EQ(gains.share(1, false, 0.3), 0.2) << "between 0.1 and 0.3";
  for (int i = 0; i < 1000; ++i) gains.note_gain(gain(0.2, 2));
  EXPECT_NEAR(gains.share(1, false, 0.3), 0.1, 0.01);
  for (int i = 0; i < 1000; ++i) gains.note_gain(gain(-0.1, 1));
  EXPECT_NEAR(gains.share(1, false, 0.3), -0.1, 0.02) << "the older ones fade";
}

// What a guess gains alone it does not gain where sixteen requests fill the step.
TEST(GainShares, GainsAreKeptByHowManyRequestsShareAStep) {
  // The number seen, the others that it says something of, and those that it does not.
  const struct {
    std::int32_t seen;
    std::vector<std::int32_t> alike;
    std::vector<std::int32_t> others;
  } cases[] = {{1, {1}, {2, 4, 8, 16}},
               {2, {2, 3}, {1, 4, 8, 16}},
               {7, {4, 7}, {1, 3, 8, 16}},
               {8, {8, 15}, {1, 3, 7, 16}},
               {20, {16, 100}, {1, 3, 7, 15}}};
  for (const auto& c : cases) {
    GainShares gains;
    for (int i = 0; i < 100; ++i) gains.note_gain(gain(1.0, 2, c.seen));
    for (const std::int32_t n : c.alike) EXPECT_GT(gains.share(n, false, 0.0), 0.4) << n;
    for (const std::int32_t n : c.others) EXPECT_EQ(gains.share(n, false, 0.0), 0.0) << n;
  }
}

TEST(GainShares, GainsOfTheLikeliestTokensAreNotExpectedOfDrawnOnes) {
  GainShares gains;
  for (int i = 0; i < 100; ++i) gains.note_gain(gain(1.0, 2));
  EXPECT_EQ(gains.share(1, /*drawn=*/true, 0.0), 0.0);
  EXPECT_FALSE(gains.proven(1, /*drawn=*/true));
  GainShares next_run;
  next_run.recall(gains.numbers());
  EXPECT_GT(next_run.share(1, false, 0.0), 0.4);
  EXPECT_EQ(next_run.share(1, /*drawn=*/true, 0.0), 0.0);
  for (int i = 0; i < 100; ++i) gains.note_gain(gain(0.1, 2, 1, /*drawn=*/true));
  EXPECT_NEAR(gains.share(1, /*drawn=*/true, 0.0), 0.05, 0.005);
  std::vector<double> numbers = gains.numbers();
  numbers.resize(10);  // written when there was no such difference
  next_run.recall(numbers);
  EXPECT_EQ(next_run.share(1, /*drawn=*/true, 0.3), 0.3);
  EXPECT_GT(next_run.share(1, false, 0.3), 0.4);
}

TEST(GainShares, AGainIsProvenBySixteenTokens) {
  GainShares gains;
  gains.note_gain(gain(0.5, 15));
  EXPECT_FALSE(gains.proven(1, false));
  for (int i = 0; i < 2; ++i) gains.note_gain(gain(0.5, 1));
  EXPECT_TRUE(gains.proven(1, false));
  for (int i = 0; i < 20; ++i) gains.note_gain(gain(-0.5, 1));
  EXPECT_FALSE(gains.proven(1, false)) << "it loses now";
}

TEST(GainShares, OneLossHoweverGreatCountsAsAFewTokens) {
  GainShares gains;
  for (int i = 0; i < 100; ++i) gains.note_gain(gain(0.5, 2));
  gains.note_gain(gain(-60000.0 / kToken, 2));
  EXPECT_GT(gains.share(1, false, 0.3), 0.1);
}

TEST(GainShares, AnotherRunsGainCountsAsFiftyTokens) {
  GainShares gains;
  for (int i = 0; i < 1000; ++i) gains.note_gain(gain(1.0, 2));
  GainShares next_run;
  next_run.recall(gains.numbers());
  EXPECT_NEAR(next_run.share(1, false, 0.0), 0.5 * 50.0 / 58.0, 0.01);
  EXPECT_TRUE(next_run.proven(1, false));
  GainShares run_after;
  run_after.recall(next_run.numbers());
  EXPECT_EQ(run_after.numbers(), next_run.numbers()) << "a gain is not forgotten";
}

TEST(GainShares, ALossOfAnotherRunIsForgottenWhereNoneConfirmsIt) {
  std::vector<double> kept = {-1.4 * 60.0, 60.0};
  double before = -1.4;
  for (int run = 0; run < 4; ++run) {
    GainShares gains;
    gains.recall(kept);
    const double share = gains.share(1, false, 0.3);
    EXPECT_EQ(share > 0.0, run >= 2) << run << ": it is not forgotten at once";
    EXPECT_GT(share, before);
    before = share;
    kept = gains.numbers();
  }
}

}  // namespace
}  // namespace outrider
