#include "llama/probe/probe_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace outrider::llama {
namespace {

using Kind = ProbeUnit::Kind;

TEST(ProbePlan, IsShortWhereKernelsCannotTellOneWidthFromAnother) {
  const ProbePlanOptions all{.widest = 16, .n_starts = 3, .n_sequences = 3, .max_leaves = 4};
  ProbePlanOptions few = all;
  few.same_for_all_widths = true;
  double cost_all = 0.0;
  double cost_few = 0.0;
  for (const ProbeUnit& unit : plan_probe(all)) cost_all += unit.cost(0);
  std::vector<std::int32_t> widest_at(3, 0);
  bool others = false;
  bool tree = false;
  for (const ProbeUnit& unit : plan_probe(few)) {
    cost_few += unit.cost(0);
    if (unit.kind == ProbeUnit::Kind::kWidth) {
      std::int32_t& widest = widest_at[static_cast<std::size_t>(unit.start)];
      widest = std::max(widest, unit.width);
    }
    others = others || unit.kind == ProbeUnit::Kind::kOthers;
    tree = tree || unit.kind == ProbeUnit::Kind::kTree;
  }
  EXPECT_EQ(widest_at, (std::vector<std::int32_t>(3, 16))) << "at every start";
  EXPECT_TRUE(others && tree);
  EXPECT_LT(cost_few, 0.3 * cost_all);
  few.widest = 2;
  EXPECT_GE(plan_probe(few).size(), 3u);
}

TEST(ProbePlan, ComparesEveryWidthAndTheSmallOnesFirstAtEveryStart) {
  const std::vector<ProbeUnit> units = plan_probe({.widest = 16, .n_starts = 3});
  std::set<std::int32_t> widths;
  for (const ProbeUnit& unit : units) {
    if (unit.kind == Kind::kWidth) widths.insert(unit.width);
  }
  EXPECT_EQ(widths.size(), 15u);
  EXPECT_EQ(*widths.begin(), 2);
  EXPECT_EQ(*widths.rbegin(), 16);
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_TRUE(units[i].required);
    EXPECT_EQ(units[i].start, static_cast<std::int32_t>(i / 3));
    EXPECT_EQ(units[i].width, static_cast<std::int32_t>(2 + i % 3));
  }
  EXPECT_EQ(
      std::count_if(units.begin(), units.end(), [](const ProbeUnit& u) { return u.required; }), 9);
}

TEST(ProbePlan, HoldsNothingWiderThanAskedForOrThanABatch) {
  for (std::int32_t widest = 2; widest <= 40; ++widest) {
    for (const std::int32_t n_batch : {2, 8, 40, 100, 512}) {
      for (const ProbeUnit& unit :
           plan_probe({.widest = widest, .n_starts = 2, .n_sequences = 3, .n_batch = n_batch})) {
        EXPECT_LE(unit.width, n_batch);
        if (unit.kind == Kind::kWidth) {
          EXPECT_LE(unit.width, widest);
        }
        EXPECT_GE(unit.start, 0);
        EXPECT_LT(unit.start, 2);
      }
    }
  }
}

TEST(ProbePlan, LeavesOthersOutWhenThereIsOneSequence) {
  for (const std::int32_t n_sequences : {1, 2}) {
    const std::vector<ProbeUnit> units = plan_probe({.n_sequences = n_sequences});
    EXPECT_EQ(std::any_of(units.begin(), units.end(),
                          [](const ProbeUnit& u) { return u.kind == Kind::kOthers; }),
              n_sequences > 1);
  }
}

TEST(ProbePlan, TreesAreComparedWhereBranchesAndTheWidthAllowThem) {
  for (const std::int32_t max_leaves : {1, 2, 4}) {
    for (const std::int32_t widest : {3, 4, 16}) {
      std::int32_t largest = 0;
      for (const ProbeUnit& unit : plan_probe({.widest = widest, .max_leaves = max_leaves})) {
        if (unit.kind == Kind::kTree) largest = std::max(largest, unit.width);
      }
      const std::int32_t by_leaves = max_leaves == 1 ? 0 : 2 * max_leaves;
      EXPECT_EQ(largest, widest < 4 ? 0 : std::min(by_leaves, widest < 8 ? 4 : 8));
    }
  }
}

TEST(ProbePlan, SuspicionRepeatsTheWidthsThatAreLeft) {
  const std::vector<ProbeUnit> units = plan_suspicion({.n_starts = 3}, /*limit=*/3);
  std::set<std::int32_t> rounds;
  for (const ProbeUnit& unit : units) {
    EXPECT_TRUE(unit.width == 2 || unit.width == 3);
    rounds.insert(unit.round);
  }
  EXPECT_GE(rounds.size(), 3u);
  EXPECT_TRUE(plan_suspicion({.n_starts = 3}, /*limit=*/1).empty());
}

TEST(ProbePlan, AUnitCostsLessWhenItsSingleStepsAreKnown) {
  const ProbeUnit unit{.width = 16};
  EXPECT_DOUBLE_EQ(unit.cost(/*known=*/0) - unit.cost(/*known=*/16), 16.0);
  EXPECT_GT(unit.cost(16), 2.0);
}

TEST(ProbePlan, RangesJoinNeighbours) {
  EXPECT_EQ(ranges({}), "");
  EXPECT_EQ(ranges({2}), "2");
  EXPECT_EQ(ranges({2, 3}), "2, 3");
  EXPECT_EQ(ranges({2, 3, 4, 8, 16}), "2-4, 8, 16");
  EXPECT_EQ(ranges({5, 7, 8, 9}), "5, 7-9");
}

}  // namespace
}  // namespace outrider::llama
