// What a draft is expected to gain, on made-up machines.
#include "lab/draft_prediction.h"

#include <gtest/gtest.h>

#include <vector>

namespace outrider::lab {
namespace {

// T(b) = ms * (1 + slope * (b - 1)).
CostCurve machine(double ms, double slope) {
  std::vector<CostPoint> points;
  for (std::int32_t width = 1; width <= 16; ++width) {
    points.push_back({.width = width, .ms = ms * (1.0 + slope * (width - 1))});
  }
  return CostCurve(points);
}

TEST(DraftPrediction, TheExampleByHand) {
  // One guess of 0.8 for 10 ms, the step of two takes 110: 1.8 tokens in 120 ms. A second one of
  // 0.5: 2.2 tokens in 120 + 20 = 140 ms.
  const std::vector<double> chances = {0.8, 0.5};
  const DraftPrediction two = predict_draft(machine(100.0, 0.1), chances, 10.0, 10.0);
  EXPECT_EQ(two.guesses, 2);
  EXPECT_NEAR(two.tokens, 2.2, 1e-6);
  EXPECT_NEAR(two.ms, 140.0, 1e-6);
  EXPECT_NEAR(two.speedup, 2.2 / 140.0 * 100.0, 1e-6);
  EXPECT_TRUE(two.pays());
}

TEST(DraftPrediction, WhatIsReadAgainBehindAWrongGuessCounts) {
  // With 0.2 the root is read again, with 0.16 the root and a guess: 2 + 3.2 ms. With 0.36 a plain
  // step follows.
  const std::vector<double> chances = {0.8, 0.8};
  const DraftPrediction two =
      predict_draft(machine(100.0, 0.1), chances, 10.0, 10.0, /*reads_again=*/true);
  EXPECT_EQ(two.guesses, 2);
  EXPECT_NEAR(two.ms, 145.2, 1e-4);
  EXPECT_NEAR(two.speedup, (2.44 + 0.36) / (145.2 + 0.36 * 100.0) * 100.0, 1e-4);
}

TEST(DraftPrediction, WhereEachTokenCostsAStepNothingPays) {
  const std::vector<double> sure(8, 1.0);
  const DraftPrediction best = predict_draft(machine(100.0, 1.0), sure, 1.0, 1.0);
  EXPECT_FALSE(best.pays());
  EXPECT_GT(best.speedup, 0.9) << "what it falls short by is the guesses' own time";
  EXPECT_GT(best.guesses, 0);
}

TEST(DraftPrediction, AGuessThatIsNeverRightCostsItsTime) {
  const std::vector<double> wrong(8, 0.0);
  const DraftPrediction best = predict_draft(machine(100.0, 0.0), wrong, 25.0, 25.0);
  EXPECT_EQ(best.guesses, 1);
  EXPECT_NEAR(best.speedup, 100.0 / 125.0, 1e-6);
}

TEST(DraftPrediction, ADearerPassMakesShorterChains) {
  const std::vector<double> chances(8, 0.7);
  std::int32_t before = 9;
  for (const double pass_ms : {1.0, 20.0, 60.0}) {
    const DraftPrediction best = predict_draft(machine(100.0, 0.1), chances, pass_ms, pass_ms);
    EXPECT_LT(best.guesses, before);
    before = best.guesses;
  }
}

}  // namespace
}  // namespace outrider::lab
