#include "lab/comparison.h"

#include <limits>

#include <gtest/gtest.h>

namespace outrider::lab {
namespace {

Comparison compared(std::int64_t identical, Exactness::Kind kind, std::int32_t exact_width,
                    std::int32_t width) {
  Comparison c;
  c.prompts = 3;
  c.tokens = 300;
  c.identical = identical;
  c.widths.push_back({.width = width, .identical = identical});
  c.drafter = "draft-model";
  c.exactness = {.kind = kind, .width = exact_width, .coverage = "widths 2-4", .reason = ""};
  return c;
}

TEST(ObservedVerdict, IsTheProbesWhereNothingSpeaksAgainstIt) {
  EXPECT_EQ(observed_verdict(compared(3, Exactness::Kind::kExact, 4, 4)), "exact");
  EXPECT_EQ(observed_verdict(compared(3, Exactness::Kind::kUpToWidth, 3, 8)),
            "exact up to width 3");
  EXPECT_EQ(observed_verdict(compared(3, Exactness::Kind::kDistributional, 1, 4)), "distributional")
      << "equal texts prove nothing";
}

TEST(ObservedVerdict, IsNeverBetterThanWhatWasSeen) {
  const Comparison broken = compared(2, Exactness::Kind::kExact, 4, 4);
  EXPECT_EQ(observed_verdict(broken), "distributional");
  EXPECT_EQ(verdict_reason(broken), "the probe said 'exact' (widths 2-4), but texts differ");
  EXPECT_EQ(observed_verdict(compared(2, Exactness::Kind::kUpToWidth, 4, 4)), "distributional");
}

TEST(ObservedVerdict, ADifferenceBeyondTheExactWidthDoesNotContradictTheVerdict) {
  EXPECT_EQ(observed_verdict(compared(0, Exactness::Kind::kUpToWidth, 3, 4)),
            "exact up to width 3");
}

TEST(ObservedVerdict, OfSeveralWidthsIsTheWidestBelowTheFirstDifference) {
  Comparison c = compared(3, Exactness::Kind::kExact, 8, 2);
  c.widths = {
      {.width = 2, .identical = 3}, {.width = 4, .identical = 3}, {.width = 8, .identical = 2}};
  EXPECT_EQ(observed_verdict(c), "exact up to width 4");
  c.widths[0].identical = 1;
  EXPECT_EQ(observed_verdict(c), "distributional");
  c.widths = {{.width = 2, .identical = 3}, {.width = 8, .identical = 3}};
  EXPECT_EQ(observed_verdict(c), "exact");
  const json::Json object = comparison_json(c);
  ASSERT_EQ(object["widths"].size(), 2U);
  EXPECT_EQ(object["widths"][1]["width"], 8);
  EXPECT_EQ(object["widths"][1]["verdict"], "identical");
}

TEST(Divergence, IsSuspiciousWhenRoundingCannotExplainIt) {
  Divergence d;
  d.logit_gap = 0.01;
  EXPECT_FALSE(d.suspicious());
  d.logit_gap = 0.51;
  EXPECT_TRUE(d.suspicious());
  d.logit_gap = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(d.suspicious());
  d.logit_gap = 0.01;
  d.repeatable = false;
  EXPECT_TRUE(d.suspicious());
}

TEST(ComparisonJson, HasTheContractsFields) {
  Comparison c = compared(2, Exactness::Kind::kDistributional, 1, 4);
  c.divergences.push_back({.prompt = 1,
                           .id = "82",
                           .position = 17,
                           .plain = 5,
                           .speculative = 6,
                           .plain_text = "a",
                           .speculative_text = "\xFF",
                           .logit_gap = 0.25});
  const json::Json object = comparison_json(c);
  EXPECT_EQ(object["prompts"], 3);
  EXPECT_EQ(object["tokens"], 300);
  EXPECT_EQ(object["identical"], 2);
  EXPECT_EQ(object["verdict"], "distributional");
  ASSERT_EQ(object["first_divergences"].size(), 1U);
  EXPECT_EQ(object["first_divergences"][0]["prompt"], 1);
  EXPECT_EQ(object["first_divergences"][0]["position"], 17);
  EXPECT_EQ(object["first_divergences"][0]["logit_gap"], 0.25);
  EXPECT_TRUE(object["acceptance_rate"].is_null()) << "nothing was drafted";
}

TEST(ComparisonTable, SaysWhoseKernelsRan) {
  Comparison c = compared(3, Exactness::Kind::kExact, 4, 4);
  c.kernels = {.own = true, .instruction_set = "avx2"};
  EXPECT_NE(comparison_table(c).find("\nkernels       Outrider's, avx2\n"), std::string::npos)
      << comparison_table(c);
  c.kernels = {.reason = "asked for"};
  EXPECT_NE(comparison_table(c).find("\nkernels       llama.cpp's: asked for\n"), std::string::npos)
      << comparison_table(c);
}

TEST(ComparisonTable, ShowsTheFirstTwentyDifferencesAndCountsTheRest) {
  Comparison c = compared(0, Exactness::Kind::kDistributional, 1, 4);
  c.prompts = 25;
  for (std::size_t i = 0; i < 25; ++i) c.divergences.push_back({.prompt = i, .id = "x"});
  const std::string table = comparison_table(c);
  EXPECT_NE(table.find("prompt 19 (id x)"), std::string::npos) << table;
  EXPECT_EQ(table.find("prompt 20 (id x)"), std::string::npos) << table;
  EXPECT_NE(table.find("and 5 more"), std::string::npos) << table;
}

}  // namespace
}  // namespace outrider::lab
