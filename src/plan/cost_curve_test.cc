#include "plan/cost_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "testing/plan_machines.h"

namespace outrider {
namespace {

using Machine = std::function<double(std::int32_t)>;

Machine machine(const std::string& name) {
  for (const testing::PlanMachine& machine : testing::plan_machines()) {
    if (machine.name == name) return machine.ms;
  }
  throw std::invalid_argument(name);
}

const Machine flat = machine("flat");
const Machine linear = machine("linear");
const Machine tiled = machine("tiled");

CostCurve measured(const Machine& machine) {
  std::vector<CostPoint> points;
  for (const std::int32_t width : {1, 2, 3, 4, 8, 16}) {
    points.push_back({.width = width, .ms = machine(width)});
  }
  return CostCurve(points);
}

TEST(CostCurve, NothingIsKnownAtFirst) {
  const CostCurve curve;
  EXPECT_TRUE(curve.empty());
  EXPECT_EQ(curve.ms(1), 0.0);
  EXPECT_TRUE(curve.points().empty());
}

TEST(CostCurve, SaysWhatWasMeasuredAndStraightLinesBetween) {
  const CostCurve curve = measured(tiled);
  for (const std::int32_t width : {1, 2, 3, 4, 8, 16}) {
    EXPECT_NEAR(curve.ms(width), tiled(width), 1e-9) << width;
  }
  EXPECT_NEAR(curve.ms(6), (tiled(4) + tiled(8)) / 2, 1e-9) << "not tiled(6): never measured";
  EXPECT_EQ(curve.ms(0), 0.0);
}

TEST(CostCurve, BeyondTheLargestItGoesOnAsFromHalfOfItOn) {
  CostCurve curve = measured(tiled);
  EXPECT_NEAR(curve.ms(32), tiled(16) + 2 * (tiled(16) - tiled(8)), 1e-9);
  EXPECT_NEAR(measured(flat).ms(64), flat(16), 1e-9);
  EXPECT_NEAR(measured(linear).ms(64), linear(64), 1e-9);
  curve.note(17, tiled(17));
  EXPECT_NEAR(curve.ms(26), tiled(17) + (tiled(17) - tiled(8)), 1e-9) << "still from 8 on";

  EXPECT_EQ(curve.reach(), 34);
  curve.note(100, 1.0);
  EXPECT_EQ(curve.reach(), 200);
  curve.note(200, 1.0);
  EXPECT_EQ(curve.reach(), CostCurve::kMaxWidth);

  const std::vector<CostPoint> falling = {{.width = 4, .ms = 20.0}, {.width = 8, .ms = 10.0}};
  EXPECT_NEAR(CostCurve(falling).ms(16), 10.0, 1e-9) << "not less and less";
  const std::vector<CostPoint> one = {{.width = 3, .ms = 30.0}};
  EXPECT_NEAR(CostCurve(one).ms(6), 60.0, 1e-9) << "nothing else is known: in proportion";
}

TEST(CostCurve, AnUnknownWidthIsLearnedFromOnePass) {
  CostCurve curve = measured(tiled);
  curve.note(6, 158.0);
  EXPECT_NEAR(curve.ms(6), 158.0, 1e-9);
  EXPECT_NEAR(curve.ms(4), tiled(4), 1e-9) << "the others stay";
  EXPECT_EQ(curve.noted(6), 1);
}

// Whichever of the first wide passes is held up, and however many widths they have.
TEST(CostCurve, WithoutAMeasurementNoPassAloneSaysWhatAWidthTakes) {
  for (const std::vector<std::int32_t>& widths :
       {std::vector<std::int32_t>{4, 4, 4, 4}, {4, 3, 3, 4}, {3, 4, 2, 4, 3}, {2, 4, 3, 2}}) {
    for (std::size_t held_up = 0; held_up < widths.size(); ++held_up) {
      CostCurve curve;
      for (int i = 0; i < 2; ++i) curve.note(1, flat(1));
      for (std::size_t i = 0; i < widths.size(); ++i) {
        EXPECT_FALSE(curve.compares_widths());
        curve.note(widths[i], flat(widths[i]) * (i == held_up ? 1000.0 : 1.0));
        if (curve.compares_widths()) break;
      }
      ASSERT_TRUE(curve.compares_widths());
      for (const std::int32_t width : {1, 2, 3, 4}) {
        EXPECT_NEAR(curve.ms(width), flat(width), 1e-9) << width << ", pass " << held_up;
      }
    }
  }
}

// Nor of the smallest one, whose second pass may come behind those of another width.
TEST(CostCurve, AFirstSingleTokenThatWasHeldUpIsOutweighedByTheSecond) {
  for (const int between : {0, 1, 2, 5}) {
    CostCurve curve;
    curve.note(1, 2000.0);
    for (int i = 0; i < between; ++i) curve.note(2, 31.0);
    curve.note(1, 30.0);
    EXPECT_NEAR(curve.ms(1), 30.0, 1e-9) << between;
    if (between > 0) {
      EXPECT_NEAR(curve.ms(2), 31.0, 1e-9) << between;
    }
    curve.note(1, 2000.0);
    EXPECT_LT(curve.ms(1), 40.0) << between << ": nor does a later one say so";
  }
}

TEST(CostCurve, WhatIsImpossibleIsNotNoted) {
  CostCurve curve;
  for (const double ms : {0.0, -1.0, std::nan(""), HUGE_VAL}) curve.note(1, ms);
  curve.note(0, 1.0);
  curve.note(CostCurve::kMaxWidth + 1, 1.0);
  EXPECT_TRUE(curve.empty());
  const std::vector<CostPoint> wrong = {{.width = 0, .ms = 1.0}, {.width = 2, .ms = -1.0}};
  EXPECT_TRUE(CostCurve(wrong).empty());
}

// What is seen beyond all that was known may be far from a straight line.
TEST(CostCurve, AKneeIsSeenAtOnce) {
  CostCurve curve = measured(flat);
  curve.note(32, 3.0 * flat(1));
  EXPECT_NEAR(curve.ms(32), 3.0 * flat(1), 1e-9);
  EXPECT_GT(curve.ms(24), 1.9 * flat(1));
}

// A machine that becomes slower as a whole, seen at one width only.
TEST(CostCurve, ADriftSeenAtOneWidthMovesAll) {
  CostCurve curve = measured(flat);
  for (int i = 0; i < 60; ++i) curve.note(4, 30.0);
  EXPECT_NEAR(curve.ms(4), 30.0, 0.5);
  EXPECT_GT(curve.ms(1), 24.0);
}

// One width becomes dearer than the others.
TEST(CostCurve, AChangedShapeIsLearnedWhereBothAreSeen) {
  CostCurve curve = measured(flat);
  for (int i = 0; i < 300; ++i) {
    curve.note(1, 20.0);
    curve.note(4, 30.0);
  }
  EXPECT_NEAR(curve.ms(4) / curve.ms(1), 1.5, 0.03);
}

// A machine that is twice as slow now and then, and takes other widths then. A few single tokens
// are among both.
TEST(CostCurve, WidthsThatAreUsedWhileTheMachineIsSlowAreNotDearer) {
  for (const double load : {1.5, 2.0, 4.0}) {
    for (const bool wide_while_slow : {true, false}) {
      CostCurve curve = measured(flat);
      for (int pass = 0; pass < 40 * 60; ++pass) {
        const bool slow = pass / 60 % 2 == 1;
        const std::int32_t width = slow == wide_while_slow && pass % 20 != 0 ? 2 : 1;
        curve.note(width, flat(width) * (slow ? load : 1.0));
        const double ratio = curve.ms(1) / curve.ms(2) / (flat(1) / flat(2));
        ASSERT_NEAR(ratio, 1.0, 0.12) << load << ' ' << pass;
      }
    }
  }
}

// A wide pass among single tokens takes the time of two graphs. The curve says what widths take
// where the graph is there, and the detour says the rest.
TEST(CostCurve, GraphsAreNoPartOfTheTimesAndTheDetourHasThem) {
  CostCurve curve({{{.width = 1, .ms = 20.0}, {.width = 4, .ms = 22.0}}}, 3.0);
  EXPECT_EQ(curve.detour_ms(4, 1), 3.0) << "the graph is not known: either builds its own";
  std::int32_t graph = 0;
  for (int pass = 0; pass < 2000; ++pass) {
    const std::int32_t width = pass % 20 == 0 ? 4 : 1;
    const double rebuilt_ms = std::exchange(graph, width) == width ? 0.0 : 6.0;
    curve.note(width, 2.0 * (width == 4 ? 22.0 : 20.0) + rebuilt_ms);
  }
  EXPECT_NEAR(curve.ms(1), 40.0, 0.5) << "the machine is half as fast by now";
  EXPECT_NEAR(curve.ms(4), 44.0, 0.5);
  EXPECT_NEAR(curve.detour_ms(4, 1), 12.0, 0.2) << "two graphs";
  EXPECT_NEAR(curve.rebuild_ms(4), 6.0, 0.1);
  EXPECT_EQ(curve.rebuild_ms(1), 0.0);
  curve.note(4, 50.0);
  EXPECT_EQ(curve.detour_ms(4, 1), 0.0) << "a plain pass would build its graph now";
  EXPECT_NEAR(curve.detour_ms(3, 1), 6.0, 0.1);
  EXPECT_EQ(curve.detour_ms(1, 1), 0.0);
  for (const std::int32_t prompt : {0, CostCurve::kMaxWidth + 1}) {
    curve.note(4, 44.0);
    curve.note(prompt, 44.0);
    EXPECT_NEAR(curve.rebuild_ms(4), 6.0, 0.1) << "of the pass before nothing else is known";
    curve.note(4, 44.0 + curve.rebuild_ms(4));
    EXPECT_EQ(curve.rebuild_ms(4), 0.0);
  }
  // A pass that took less than its graph was built anyway.
  for (int i = 0; i < 100; ++i) curve.note(1 + i % 2, 1.0);
  EXPECT_GT(curve.ms(1), 0.0);
  const std::vector<CostPoint> point = {{.width = 1, .ms = 20.0}};
  for (const double impossible : {-1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_EQ(CostCurve(point, impossible).rebuild_ms(2), 0.0);
  }
}

TEST(CostCurve, PassesThatWereHeldUpCountLittle) {
  for (const Machine& machine : {flat, linear, tiled}) {
    std::uint64_t state = 7;
    CostCurve curve = measured(machine);
    for (int i = 0; i < 400; ++i) {
      const std::int32_t width = 1 + static_cast<std::int32_t>(mix64(++state) % 8);
      const double noise = 0.97 + 0.06 * static_cast<double>(mix64(++state) % 1000) / 1000.0;
      const double held_up = mix64(++state) % 12 == 0 ? 4.0 : 1.0;
      curve.note(width, machine(width) * noise * held_up);
    }
    for (std::int32_t width = 2; width <= 8; ++width) {
      EXPECT_NEAR(curve.ms(width) / curve.ms(1) / (machine(width) / machine(1)), 1.0, 0.12)
          << width;
    }
  }
}

}  // namespace
}  // namespace outrider
