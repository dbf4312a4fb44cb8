#include "plan/drafter_costs.h"

#include <gtest/gtest.h>

#include <vector>

#include "testing/drafter_figures.h"

namespace outrider {
namespace {

using testing::kToken;
using testing::target;

TEST(DrafterCosts, FurtherPassesHaveTheirOwnCostOnceSeen) {
  DrafterCosts costs;
  EXPECT_EQ(costs.pass_ms(true, 1, target()), 0.0);
  costs.expect_passes(0.5);
  EXPECT_DOUBLE_EQ(costs.pass_ms(true, 1, target()), 0.5 * kToken);
  EXPECT_DOUBLE_EQ(costs.pass_ms(true, 8, target()), 0.5 * 2.0 * kToken / 8.0);
  costs.note_pass(/*first=*/true, 1, 20.0, target());
  EXPECT_DOUBLE_EQ(costs.pass_ms(false, 1, target()), 20.0);
  EXPECT_NEAR(costs.pass_ms(true, 8, target()), 5.0, 1e-9) << "twice one, as the target's";
  costs.note_pass(/*first=*/false, 1, 10.0, target());
  EXPECT_DOUBLE_EQ(costs.pass_ms(false, 1, target()), 10.0);
  EXPECT_DOUBLE_EQ(costs.pass_ms(true, 1, target()), 20.0);
  costs.note_pass(/*first=*/true, 4, 40.0, target());
  EXPECT_DOUBLE_EQ(costs.pass_ms(true, 4, target()), 10.0) << "each request's part";
}

TEST(DrafterCosts, WhereAllGuessesComeAtOnceFurtherPassesTakeNothing) {
  DrafterCosts costs;
  costs.expect_passes(0.5);
  EXPECT_GT(costs.pass_ms(false, 1, target()), 0.0);
  costs.set_at_once(true);
  EXPECT_EQ(costs.pass_ms(false, 1, target()), 0.0);
  EXPECT_GT(costs.pass_ms(true, 1, target()), 0.0);
  costs.recall({});
  EXPECT_EQ(costs.pass_ms(false, 1, target()), 0.0) << "it is no experience of another run";
}

TEST(DrafterCosts, APassThatWasHeldUpAloneCountsAsWhatIsCredible) {
  DrafterCosts costs;
  costs.expect_passes(0.1);
  EXPECT_NEAR(costs.note_pass(true, 1, 20000.0, target()), 8.0 * 0.1 * kToken, 1e-9)
      << "even the first";
  costs.note_pass(true, 1, 0.1 * kToken, target());
  EXPECT_NEAR(costs.pass_ms(true, 1, target()), 0.1 * kToken, 1e-9) << "a pass is never too quick";
  for (int i = 0; i < 20; ++i) costs.note_pass(true, 1, 0.1 * kToken, target());
  EXPECT_LT(costs.note_pass(true, 1, 20000.0, target()), 0.4 * kToken);
  EXPECT_EQ(costs.note_pass(true, 1, 20000.0, target()), 20000.0) << "twice is no accident";
}

TEST(DrafterCosts, NoPassIsTooLongWhereNothingIsKnown) {
  DrafterCosts costs;
  EXPECT_EQ(costs.note_pass(true, 1, 20000.0, CostCurve()), 20000.0);
  DrafterCosts beside;
  EXPECT_DOUBLE_EQ(beside.note_pass(true, 8, 20000.0, target()), 2.0 * kToken)
      << "of the target something is: as long as its own";
}

TEST(DrafterCosts, WhatReadingTakesFollowsFromPassesUntilItWasSeen) {
  DrafterCosts costs;
  EXPECT_DOUBLE_EQ(costs.reading_ms(40, target()), 40.0 * 0.03 * kToken) << "a guess";
  costs.expect_passes(1.0);
  EXPECT_DOUBLE_EQ(costs.reading_ms(40, target()), 40.0 * 0.2 * kToken);
  costs.note_pass(/*first=*/true, 1, 0.5 * kToken, target());
  EXPECT_DOUBLE_EQ(costs.reading_ms(40, target()), 40.0 * 0.2 * 0.5 * kToken);
  const CostCurve one_width(std::vector<CostPoint>{{.width = 1, .ms = kToken}});
  EXPECT_DOUBLE_EQ(costs.reading_ms(40, one_width), 40.0 * 0.3 * 0.5 * kToken);
  EXPECT_FALSE(costs.has_read());
  costs.note_reading(1000, 1000 * 0.05 * kToken, target());
  EXPECT_TRUE(costs.has_read());
  EXPECT_DOUBLE_EQ(costs.reading_ms(200, target()), 10.0 * kToken);
}

TEST(DrafterCosts, ReadingThatWasHeldUpAloneCountsAsWhatIsCredible) {
  for (const bool first : {true, false}) {
    DrafterCosts costs;
    costs.note_pass(true, 1, 0.1 * kToken, target());
    if (!first) costs.note_reading(300, 300 * 0.02 * kToken, target());
    const double most = first ? 8.0 : 3.0;
    EXPECT_NEAR(costs.note_reading(300, 60000.0, target()), most * 300 * 0.02 * kToken, 1e-9);
    EXPECT_EQ(costs.note_reading(300, 60000.0, target()), 60000.0) << "twice is no accident";
  }
}

TEST(DrafterCosts, ReadingNothingSaysNothing) {
  DrafterCosts costs;
  EXPECT_EQ(costs.note_reading(0, 50.0, target()), 0.0);
  EXPECT_FALSE(costs.has_read());
}

TEST(DrafterCosts, WhatWasSeenHoldsInTheNextRun) {
  DrafterCosts costs;
  costs.note_pass(/*first=*/true, 1, 20.0, target());
  costs.note_pass(/*first=*/false, 1, 10.0, target());
  costs.note_reading(100, 70.0, target());
  DrafterExperience experience;
  costs.tell(&experience);
  DrafterCosts next_run;
  next_run.note_pass(/*first=*/true, 1, 60.0, target());
  next_run.recall(experience);
  for (const bool first : {true, false}) {
    EXPECT_NEAR(next_run.pass_ms(first, 1, target()), first ? 20.0 : 10.0, 1e-9);
  }
  EXPECT_NEAR(next_run.reading_ms(100, target()), 70.0, 1e-9);
  for (int i = 0; i < 20; ++i) next_run.note_reading(100, 35.0, target());
  EXPECT_LT(next_run.reading_ms(100, target()), 40.0) << "what is seen from then on outweighs it";
}

}  // namespace
}  // namespace outrider
