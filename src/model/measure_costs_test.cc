#include "model/measure_costs.h"

#include <gtest/gtest.h>

#include <utility>

#include "testing/fake_model.h"
#include "testing/plan_machines.h"

namespace outrider {
namespace {

using testing::FakeModel;

Capabilities capabilities() {
  return {.n_vocab = 8,
          .n_ctx = 256,
          .n_batch = 32,
          .n_sequences = 2,
          .rollback = Rollback::kAny,
          .max_leaves = 4,
          .max_width = 16};
}

class MeasureCosts : public ::testing::Test {
 protected:
  MeasureOptions options() {
    MeasureOptions o;
    o.now_ms = [this] { return now_ms_; };
    return o;
  }

  // Every pass takes what `ms` says of its tokens, and the n-th one `held_up` times as long.
  void run_on(FakeModel& model, std::function<double(std::int32_t)> ms,
              std::int64_t n_held_up = -1) {
    model.on_evaluated([this, ms, n_held_up](std::int64_t tokens) {
      now_ms_ += ms(static_cast<std::int32_t>(tokens)) * (passes_ == n_held_up ? 50.0 : 1.0);
      ++passes_;
    });
  }

  double now_ms_ = 0.0;
  std::int64_t passes_ = 0;
};

TEST_F(MeasureCosts, FindsEveryMachinesTimes) {
  for (const testing::PlanMachine& machine : testing::plan_machines()) {
    FakeModel model(capabilities(), testing::random_rows(8, 1, 1.0f));
    run_on(model, machine.ms);
    const Result<PassCosts> costs = measure_costs(model, options());
    ASSERT_TRUE(costs.ok());
    ASSERT_EQ(costs->points.size(), 6U);
    for (const CostPoint& point : costs->points) {
      EXPECT_NEAR(point.ms, machine.ms(point.width), 1e-9) << machine.name << point.width;
    }
    EXPECT_EQ(model.length(0), 0);
    EXPECT_FALSE(model.waits(0));
  }
}

TEST_F(MeasureCosts, OnePassThatIsHeldUpDoesNotCount) {
  for (std::int64_t held_up = 2; held_up < 20; ++held_up) {
    FakeModel model(capabilities(), testing::random_rows(8, 1, 1.0f));
    passes_ = 0;
    run_on(
        model, [](std::int32_t width) { return 2.0 + width; }, held_up);
    const Result<PassCosts> costs = measure_costs(model, options());
    ASSERT_TRUE(costs.ok());
    for (const CostPoint& point : costs->points) EXPECT_NEAR(point.ms, 2.0 + point.width, 1e-9);
  }
}

// As llama.cpp, which keeps the graph of the last pass alone. Whichever pass is held up.
TEST_F(MeasureCosts, WhatBuildingAnotherGraphTakesIsApart) {
  for (std::int64_t held_up = 2; held_up < 30; ++held_up) {
    FakeModel model(capabilities(), testing::random_rows(8, 1, 1.0f));
    passes_ = 0;
    std::int32_t graph = 0;
    run_on(
        model,
        [&graph](std::int32_t width) {
          const double rebuilt_ms = std::exchange(graph, width) == width ? 0.0 : 0.5;
          return 2.0 + width + rebuilt_ms;
        },
        held_up);
    const Result<PassCosts> costs = measure_costs(model, options());
    ASSERT_TRUE(costs.ok());
    EXPECT_NEAR(costs->rebuild_ms, 0.5, 1e-9) << held_up;
    for (const CostPoint& point : costs->points) {
      EXPECT_NEAR(point.ms, 2.0 + point.width, 1e-9) << point.width << ", pass " << held_up;
    }
  }
}

// A model of which the budget takes a round or two: one pass that was held up would be a price that
// is kept.
TEST_F(MeasureCosts, OfFewRoundsNobodyKnowsWhatAGraphTakes) {
  for (const double single_ms : {50.0, 100.0, 500.0}) {
    for (std::int64_t held_up = 2; held_up < 9; ++held_up) {
      FakeModel model(capabilities(), testing::random_rows(8, 1, 1.0f));
      passes_ = 0;
      now_ms_ = 0.0;
      model.on_evaluated([&](std::int64_t) {
        now_ms_ += single_ms * (passes_ == held_up ? 1.3 : 1.0);
        ++passes_;
      });
      MeasureOptions o = options();
      o.budget_ms = 20.0 * single_ms;
      const Result<PassCosts> costs = measure_costs(model, o);
      ASSERT_TRUE(costs.ok());
      EXPECT_EQ(costs->rebuild_ms, 0.0) << single_ms << ' ' << held_up;
    }
  }
}

// Kept times are looked at again: those of an unchanged machine hold, with a graph's price, too.
TEST_F(MeasureCosts, KnownTimesHoldUntilTheMachineIsAnother) {
  for (const double graph_ms : {0.0, 2.0, 5.0}) {
    FakeModel model(capabilities(), testing::random_rows(8, 1, 1.0f));
    std::int32_t graph = 0;
    double wide_times = 1.0;
    run_on(model, [&](std::int32_t width) {
      const double rebuilt_ms = std::exchange(graph, width) == width ? 0.0 : graph_ms;
      return 20.0 + 0.5 * width * (width > 1 ? wide_times : 1.0) + rebuilt_ms;
    });
    Result<PassCosts> known = measure_costs(model, options());
    ASSERT_TRUE(known.ok());
    const auto hold = [&] { return *costs_hold(model, *known, options()); };
    const std::int64_t before = passes_;
    EXPECT_TRUE(hold()) << graph_ms;
    EXPECT_LE(passes_ - before, 13) << "a text and three rounds of four passes";
    wide_times = 2.0;
    EXPECT_FALSE(hold()) << graph_ms << ": 36 ms for 16 tokens in place of 28";
    wide_times = 1.0;
    for (CostPoint& point : known->points) {
      const double right = std::exchange(point.ms, 1.5 * point.ms);
      const bool is_looked_at = point.width == 1 || point.width == 4 || point.width == 16;
      EXPECT_EQ(hold(), !is_looked_at) << graph_ms << ": " << point.width << " in a bad moment";
      point.ms = right;
    }
  }
}

TEST_F(MeasureCosts, WhatTakesTooLongToLookAtOrIsNotKnownIsNotLookedAt) {
  FakeModel model(capabilities(), testing::random_rows(8, 1, 1.0f));
  run_on(model, [](std::int32_t) { return 10.0; });
  const auto hold = [&](std::vector<CostPoint> points) {
    return *costs_hold(model, {.points = std::move(points)}, options());
  };
  EXPECT_TRUE(hold({{.width = 1, .ms = 500.0}, {.width = 16, .ms = 900.0}})) << "3 s";
  EXPECT_TRUE(hold({{.width = 1, .ms = 500.0}}));
  EXPECT_TRUE(hold({{.width = 4, .ms = 500.0}}));
  EXPECT_EQ(passes_, 0);
  EXPECT_FALSE(hold({}));
  EXPECT_FALSE(hold({{.width = 1, .ms = 10.0}, {.width = 2, .ms = 15.0}}));
}

TEST_F(MeasureCosts, SamplesAreAllRoundsButTheFirst) {
  FakeModel model(capabilities(), testing::random_rows(8, 1, 1.0f));
  double slower = 0.0;
  model.on_evaluated(
      [&](std::int64_t tokens) { now_ms_ += static_cast<double>(tokens) + (slower += 0.125); });
  MeasureOptions o = options();
  o.widths = {1, 4};
  o.depth = 1;
  o.rounds = 5;
  const Result<std::vector<CostSamples>> samples = measure_cost_samples(model, o);
  ASSERT_TRUE(samples.ok());
  ASSERT_EQ(samples->size(), 2U);
  // The text is the first pass, the round that warms up the next three.
  EXPECT_EQ((*samples)[0].behind_ms, (std::vector<double>{1.625, 2.0, 2.375, 2.75, 3.125}));
  EXPECT_EQ((*samples)[0].ms, (std::vector<double>{1.75, 2.125, 2.5, 2.875, 3.25}));
  EXPECT_EQ((*samples)[1].ms, (std::vector<double>{4.875, 5.25, 5.625, 6.0, 6.375}));
  EXPECT_TRUE((*samples)[1].behind_ms.empty());
  EXPECT_EQ(quantile((*samples)[0].ms, 0.5), 2.5);
  EXPECT_EQ(quantile((*samples)[0].ms, 0.25), 2.125);
  EXPECT_EQ(quantile({3.0}, 0.75), 3.0);
}

TEST_F(MeasureCosts, KeepsToItsBudget) {
  FakeModel model(capabilities(), testing::random_rows(8, 1, 1.0f));
  run_on(model, [](std::int32_t width) { return 60.0 * width; });
  ASSERT_TRUE(measure_costs(model, options()).ok());
  // A round takes 2,100 ms: one to warm up and one that counts, and a third at most.
  EXPECT_LT(now_ms_, 3 * 2100.0 + 64 * 60.0 + 1.0);
}

TEST_F(MeasureCosts, OfAModelWhoseRoundTakesTheBudgetOneRoundIsMeasured) {
  FakeModel model(capabilities(), testing::random_rows(8, 1, 1.0f));
  run_on(model, [](std::int32_t width) { return 1000.0 * width; });
  std::int32_t rounds = 0;
  MeasureOptions o = options();
  o.budget_ms = 3000.0;
  o.on_round = [&](std::int32_t) { ++rounds; };
  const Result<PassCosts> costs = measure_costs(model, o);
  ASSERT_TRUE(costs.ok());
  EXPECT_EQ(rounds, 1);
  EXPECT_EQ(passes_, 2 + 7)
      << "the text in two batches, each width once, and a single token before";
  ASSERT_EQ(costs->points.size(), 6U);
  for (const CostPoint& point : costs->points) EXPECT_EQ(point.ms, 1000.0 * point.width);
}

TEST_F(MeasureCosts, MeasuresWhatTheModelTakes) {
  Capabilities caps = capabilities();
  caps.max_width = 3;
  FakeModel narrow(caps, testing::random_rows(8, 1, 1.0f));
  run_on(narrow, [](std::int32_t width) { return 1.0 * width; });
  EXPECT_EQ(measure_costs(narrow, options())->points.size(), 3U);
  caps.rollback = Rollback::kNone;
  FakeModel stuck(caps, testing::random_rows(8, 1, 1.0f));
  EXPECT_TRUE(measure_costs(stuck, options())->points.empty());
}

// Recurrent layers: the text grows by the roots that stay, as far as the context goes.
TEST_F(MeasureCosts, AModelThatCannotDropTokensIsMeasuredAndLeftEmpty) {
  for (const Rollback rollback : {Rollback::kSnapshot, Rollback::kSaved}) {
    Capabilities caps = capabilities();
    caps.rollback = rollback;
    caps.max_leaves = 1;
    FakeModel model(caps, testing::random_rows(8, 1, 1.0f));
    run_on(model, [](std::int32_t width) { return 2.0 + width; });
    const Result<PassCosts> costs = measure_costs(model, options());
    ASSERT_TRUE(costs.ok()) << costs.status().message();
    ASSERT_EQ(costs->points.size(), 6U);
    for (const CostPoint& point : costs->points) EXPECT_NEAR(point.ms, 2.0 + point.width, 1e-9);
    EXPECT_EQ(model.length(0), 0);
    EXPECT_FALSE(model.waits(0));
    caps.n_ctx = 100;  // is full before the last round
    FakeModel small(caps, testing::random_rows(8, 1, 1.0f));
    EXPECT_TRUE(measure_costs(small, options())->points.empty());
  }
}

TEST_F(MeasureCosts, EndsEmptyWhenItFailsOrIsCancelled) {
  FakeModel model(capabilities(), testing::random_rows(8, 1, 1.0f));
  model.fail_evaluate({Status(), Status(), Status(), Status(), internal_error("on purpose")});
  EXPECT_EQ(measure_costs(model, options()).status().code(), StatusCode::kInternal);
  EXPECT_EQ(model.length(0), 0);
  const std::atomic<bool> cancel{true};
  MeasureOptions o = options();
  o.cancel = &cancel;
  EXPECT_EQ(measure_costs(model, o).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(model.length(0), 0);
}

}  // namespace
}  // namespace outrider
