#include "plan/exploration.h"

#include <gtest/gtest.h>

#include "testing/drafter_figures.h"

namespace outrider {
namespace {

using testing::kToken;

constexpr double kAllowance = 0.01;  // of all time

struct Explored {
  double spent = 0.0;  // ms
  double time = 0.0;   // ms
  int times = 0;
};

// A drafter that is asked whenever it may be. It takes `ms` where `expected_ms` are expected. So
// much time has passed before that what may be taken at once is at its limit.
Explored explore(double expected_ms, double ms, int steps) {
  constexpr double kBefore = 1000.0 * kToken;
  Exploration exploration;
  Explored explored;
  for (int step = 0; step < steps; ++step) {
    explored.time += kToken;
    exploration.add_allowance(kAllowance * kToken);
    if (!exploration.begin(expected_ms, kToken, kBefore + explored.time)) continue;
    exploration.end(expected_ms, ms);
    explored.spent += ms;
    ++explored.times;
  }
  return explored;
}

TEST(Exploration, ItTakesItsShareAndNoMore) {
  // Less than what is expected, as much, and more.
  for (const double ms : {0.1 * kToken, 0.3 * kToken, 0.5 * kToken}) {
    const Explored explored = explore(0.3 * kToken, ms, 10000);
    EXPECT_LE(explored.spent, kAllowance * explored.time + Exploration::kExploredAtOnce * kToken);
    EXPECT_GT(explored.spent, 0.8 * kAllowance * explored.time);
    EXPECT_GT(explored.times, 100);
  }
}

// What it takes beyond what may be taken at once is saved up before.
TEST(Exploration, ASlowDrafterTakesNoMoreAndIsAskedLessOften) {
  const Explored slow = explore(10.0 * kToken, 10.0 * kToken, 10000);
  EXPECT_LE(slow.spent, kAllowance * slow.time + Exploration::kExploredAtOnce * kToken);
  EXPECT_GE(slow.times, 10);
}

TEST(Exploration, ItWaitsUntilEnoughTimeHasPassed) {
  Exploration exploration;
  EXPECT_FALSE(exploration.begin(kToken, kToken, 0.0));
  exploration.add_allowance(0.45 * kToken);
  EXPECT_FALSE(exploration.begin(kToken, kToken, 45.0 * kToken));
  exploration.add_allowance(0.1 * kToken);
  EXPECT_TRUE(exploration.begin(kToken, kToken, 55.0 * kToken));
  exploration.end(kToken, 1.3 * kToken);
  EXPECT_FALSE(exploration.begin(kToken, kToken, 55.0 * kToken)) << "what it took is counted";
}

TEST(Exploration, WhatWasNotUsedForLongIsSavedUpForOneTimeOnly) {
  Exploration exploration;
  exploration.add_allowance(100.0 * kToken);
  int times = 0;
  while (exploration.begin(2.0 * kToken, kToken, 10000.0 * kToken)) {
    exploration.end(2.0 * kToken, 2.0 * kToken);
    ++times;
  }
  EXPECT_EQ(times, 2) << "once what was saved up, once what may be taken at once";
}

}  // namespace
}  // namespace outrider
