#include "plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "testing/plan_machines.h"

namespace outrider {
namespace {

// A planner on a Zen 4 that saw a pass of its first drafter take `pass` of a single token.
Planner planner_on_zen4(double pass) {
  const testing::PlanMachine machine = testing::zen4_own_kernels();
  std::vector<CostPoint> points;
  for (const std::int32_t width : {1, 2, 3, 4, 8, 16}) {
    points.push_back({.width = width, .ms = machine.ms(width)});
  }
  Planner planner;
  planner.set_target_cost(CostCurve(points));
  planner.account(0).note_pass(/*first=*/true, 1, pass * machine.ms(1), planner.target_cost());
  return planner;
}

bool sure_guesses_pay(const Planner& planner, std::int32_t n_ready) {
  const std::int32_t most = std::min(31, planner.target_cost().reach() - n_ready);
  return planner.sure_guesses_pay(0, n_ready,
                                  StepCosts(planner.target_cost(), n_ready, n_ready, most));
}

TEST(Planner, SureGuessesPayWhereAStepHasRoomForThem) {
  const Planner cheap = planner_on_zen4(0.13);
  EXPECT_TRUE(sure_guesses_pay(cheap, 1));
  EXPECT_TRUE(sure_guesses_pay(cheap, 4));
  EXPECT_FALSE(sure_guesses_pay(cheap, 16)) << "32 tokens in 7.5, where 16 take 3.7";
}

TEST(Planner, NoGuessPaysThatTakesAsLongAsAToken) {
  Planner dear = planner_on_zen4(1.0);
  EXPECT_FALSE(sure_guesses_pay(dear, 1)) << "two tokens in 2.04";
  EXPECT_FALSE(sure_guesses_pay(dear, 4));
  dear.account(0).set_at_once(true);
  EXPECT_TRUE(sure_guesses_pay(dear, 1)) << "three tokens in 2.1";
}

TEST(Planner, AFewOfTheRequestsMayHaveTheRoomThatOneOrAllHaveNot) {
  const std::vector<CostPoint> tiles = {{.width = 1, .ms = 100.0},  {.width = 16, .ms = 100.0},
                                        {.width = 17, .ms = 120.0}, {.width = 24, .ms = 120.0},
                                        {.width = 25, .ms = 200.0}, {.width = 32, .ms = 200.0}};
  Planner planner;
  planner.set_target_cost(CostCurve(tiles));
  planner.account(0).note_pass(/*first=*/true, 1, 10.0, planner.target_cost());
  EXPECT_TRUE(planner.sure_guesses_pay(0, 16, StepCosts(planner.target_cost(), 16, 16, 16)));
}

TEST(Planner, WhatADrafterIsExpectedToTakeDoesNotRuleItOut) {
  Planner planner = planner_on_zen4(0.13);
  planner.forget(0);
  planner.expect_passes(0, 1.0);
  EXPECT_TRUE(sure_guesses_pay(planner, 1));
}

}  // namespace
}  // namespace outrider
