#include "lab/cost_file.h"

#include <gtest/gtest.h>

#include "testing/tiny_dir.h"

namespace outrider::lab {
namespace {

Result<CostFile> read(const std::string& text) {
  const testing::TempDir dir;
  testing::write_bytes(dir.file("cost.json"), text);
  return CostFile::read(dir.file("cost.json"));
}

TEST(CostFile, BetweenMeasuredWidthsItIsALineAndBehindThemAnError) {
  const Result<CostFile> cost =
      read("[{\"width\": 1, \"ms\": 10}, {\"width\": 4, \"ms\": 16}, {\"width\": 2, \"ms\": 15}]");
  ASSERT_TRUE(cost.ok()) << cost.status().message();
  for (const auto& [width, ms] :
       std::vector<std::pair<int, double>>{{1, 10.0}, {2, 15.0}, {3, 15.5}, {4, 16.0}}) {
    ASSERT_TRUE(cost->ms(width).ok());
    EXPECT_DOUBLE_EQ(*cost->ms(width), ms);
  }
  EXPECT_EQ(cost->ms(5).status().code(), StatusCode::kInvalidArgument);
}

TEST(CostFile, TheSpeedUpIsPlainTimeOverTheStepsTimeWithDraftingInIt) {
  const Result<CostFile> cost = read(
      "{\"machine\": \"x\", \"curve\": [{\"width\": 1, \"ms\": 10}, {\"width\": 3, \"ms\": "
      "14}]}");
  ASSERT_TRUE(cost.ok()) << cost.status().message();
  ReplayStats stats;
  stats.tokens = 100;
  stats.steps = 40;
  stats.steps_by_width = {0, 10, 0, 30};
  stats.draft_ms = 15.0;
  stats.accept_ms = 5.0;
  ASSERT_TRUE(cost->speedup(stats).ok());
  EXPECT_DOUBLE_EQ(*cost->speedup(stats), 1000.0 / (10 * 10.0 + 30 * 14.0 + 20.0));
  stats.steps_by_width.push_back(1);
  EXPECT_FALSE(cost->speedup(stats).ok()) << "no step of four was measured";
}

TEST(CostFile, WhatIsNoCurveIsRefusedWithTheReason) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1"},
      {"{}", "no array"},
      {"[]", "no array"},
      {"[1]", "'width'"},
      {"[{\"width\": 1.5, \"ms\": 3}]", "'width'"},
      {"[{\"width\": 0, \"ms\": 3}]", "'width'"},
      {"[{\"width\": 1, \"ms\": 0}]", "'ms'"},
      {"[{\"width\": 1, \"ms\": \"3\"}]", "'ms'"},
      {"[{\"width\": 2, \"ms\": 3}]", "width 1"},
      {"[{\"width\": 1, \"ms\": 3}, {\"width\": 1, \"ms\": 4}]", "twice"},
  };
  for (const auto& [text, message] : cases) {
    const Status status = read(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("cost.json"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace outrider::lab
