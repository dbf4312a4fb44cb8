// Calibrating hand-written models: which curves there are, and what cannot be measured.
#include "lab/calibrate_run.h"

#include <gtest/gtest.h>

#include <atomic>

#include "testing/runtime_fixture.h"

namespace outrider::lab {
namespace {

class CalibrateRunTest : public testing::RuntimeTest {
 protected:
  CalibrateRunTest() {
    plan_.target = testing::model("target");
    plan_.widths = {1, 2, 5};
    plan_.depths = {20, 8};
    plan_.repeat = 3;
  }
  Status measure(const Watcher& watcher = {}) {
    const std::unique_ptr<Runtime> runtime = make();
    EXPECT_TRUE(runtime->load(ModelRole::kDraft, testing::model("draft")).ok());
    EXPECT_TRUE(runtime->wait_loaded(-1));
    const std::shared_ptr<const Target> target = runtime->target();
    return measure_models({.runtime = *runtime, .target = *target, .watcher = watcher}, plan_,
                          result_);
  }

  CalibratePlan plan_;
  Calibration result_;
};

TEST_F(CalibrateRunTest, EveryDepthHasACurveAndTheDraftItsPasses) {
  const Status status = measure();
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(result_.curves.size(), 2U);
  EXPECT_EQ(result_.curves[0].depth, 20) << "in the order asked for";
  ASSERT_EQ(result_.curves[1].points.size(), 3U);
  EXPECT_EQ(result_.curves[1].points[2].width, 5);
  EXPECT_EQ(result_.curves[1].points[2].time.n, 3);
  ASSERT_TRUE(result_.draft);
  EXPECT_EQ(result_.draft->path, "draft");
  EXPECT_EQ(result_.first_pass.n, 3);
  EXPECT_EQ(result_.target.path, "target");
  EXPECT_FALSE(wants_stock_curve(result_)) << "there are no kernels in a hand-written model";
}

TEST(CalibrationTable, TheSpreadOfFewPassesIsSeen) {
  EXPECT_EQ(summarise({10.0, 100.0}).ms, 55.0);
  EXPECT_GT(summarise({1.0, 2.0, 9.0}).high_ms, 2.0);
  Calibration result;
  const auto table_of = [&result](const std::vector<double>& ms) {
    result.curves = {curve_of(64, {{.width = 1, .ms = ms}})};
    return calibration_table(result);
  };
  const std::string two = table_of({10.0, 100.0});
  EXPECT_NE(two.find("32.50 to 77.50"), std::string::npos) << two;
  EXPECT_NE(two.find("The times vary much (width 1)"), std::string::npos) << two;
  const std::string steady = table_of({10.0, 10.1});
  EXPECT_EQ(steady.find("vary much"), std::string::npos) << steady;
  const std::string one = table_of({10.0});
  EXPECT_EQ(one.find("10.00 to"), std::string::npos) << "one pass has no spread\n" << one;
}

// The planner counts graphs apart, and so does what it is compared with.
TEST(CalibrationTable, GraphsAreShownApartFromTheWidths) {
  const MeasuredCurve curve =
      curve_of(64, {{.width = 1, .ms = {10.0, 10.0, 10.0}, .behind_ms = {11.5, 11.5, 11.5}},
                    {.width = 2, .ms = {13.0, 13.0, 13.0}}});
  EXPECT_EQ(curve.rebuild_ms, 1.5);
  EXPECT_EQ(curve.points[0].time.ms, 10.0);
  EXPECT_EQ(curve.points[1].time.ms, 11.5);
  Calibration result;
  result.curves = {curve};
  EXPECT_EQ(calibration_json(result)["depths"][0]["rebuild_ms"], 1.5);
  const std::string table = calibration_table(result);
  EXPECT_NE(table.find("1.50 ms more where the step before was of another width"),
            std::string::npos)
      << table;
}

TEST_F(CalibrateRunTest, WidthOneAloneIsMeasured) {
  plan_.widths = {1};
  ASSERT_TRUE(measure().ok());
  EXPECT_EQ(result_.curves[0].points.size(), 1U);
}

TEST_F(CalibrateRunTest, WhatDoesNotFitIsSaid) {
  plan_.widths = {1, 17};
  EXPECT_EQ(measure().message(),
            "--widths has 17, but 'target' takes at most 16 tokens in a step here");
  plan_.widths = {1, 5};
  plan_.depths = {60};
  EXPECT_EQ(measure().message(),
            "--depth 60 and a pass of 5 do not fit the context of 64 tokens; give a larger --ctx");
}

TEST_F(CalibrateRunTest, AnInterruptionEndsItAndWhatWasMeasuredStays) {
  std::atomic<bool> interrupt{false};
  EXPECT_EQ(measure({.progress = [&](const std::string& title,
                                     double) { interrupt = title == "measuring behind 8 tokens"; },
                     .interrupt = &interrupt})
                .code(),
            StatusCode::kCancelled);
  EXPECT_EQ(result_.curves.size(), 1U);
}

}  // namespace
}  // namespace outrider::lab
