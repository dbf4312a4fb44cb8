// A probe whose time is short: it claims what it compared, and a later one goes on from there.
#include <gtest/gtest.h>

#include "llama/probe/run_probe_test.h"
#include "testing/wrong_model.h"

namespace outrider::llama {
namespace {

using testing::RowFacts;
using testing::WrongModel;

TEST(ProbeTime, TheBudgetCutsOffAndTheVerdictClaimsOnlyWhatWasCompared) {
  for (const double budget_ms : {0.5, 100.0, 1000.0, 5000.0, 20000.0}) {
    WrongModel model(nullptr);
    model.set_ms_per_evaluation(100.0);
    const ProbeReport report = run_probe(model, {.budget_ms = budget_ms});
    EXPECT_FALSE(report.complete);
    EXPECT_EQ(report.exactness.width, report.everywhere);
    if (report.everywhere < 16) {
      EXPECT_NE(report.exactness.verdict(), "exact");
      EXPECT_NE(report.exactness.reason.find("not compared everywhere"), std::string::npos);
    }
    EXPECT_GE(report.rows, 2) << "something is always compared";
    EXPECT_NE(report.exactness.coverage.find("cut off by the budget"), std::string::npos);
    // The first comparison, at least; what is required may take three times the budget, and is
    // estimated without the text in front of it.
    EXPECT_LE(report.elapsed_ms, 3.0 * budget_ms + 1000.0);
  }
}

TEST(ProbeTime, AWidthThatTheTimeDidNotReachIsNotClaimed) {
  // Wrong from width 8 on, which a short budget never gets to.
  const auto wrong = [](const RowFacts& row) { return row.batch >= 8; };
  WrongModel hurried(wrong);
  hurried.set_ms_per_evaluation(100.0);
  const ProbeReport report = run_probe(hurried, {.budget_ms = 1500.0});
  EXPECT_EQ(report.exactness.verdict(), "exact up to width 4");
  EXPECT_NE(report.exactness.reason.find("not compared"), std::string::npos);
  WrongModel starved(wrong);
  starved.set_ms_per_evaluation(100.0);
  EXPECT_EQ(run_probe(starved, {.budget_ms = 1.0}).exactness.verdict(), "distributional");
}

TEST(ProbeTime, InsistingComparesWhatIsRequiredHoweverLongItTakes) {
  WrongModel model(nullptr);
  model.set_ms_per_evaluation(100.0);
  const ProbeReport report = run_probe(model, {.budget_ms = 1.0, .insist = true});
  EXPECT_EQ(report.exactness.verdict(), "exact up to width 4");
}

TEST(ProbeTime, MoreTimeComparesMore) {
  std::int64_t last = 0;
  for (const double budget_ms : {500.0, 2000.0, 8000.0, 1e6}) {
    WrongModel model(nullptr);
    model.set_ms_per_evaluation(50.0);
    const ProbeReport report = run_probe(model, {.budget_ms = budget_ms});
    EXPECT_GT(report.rows, last);
    last = report.rows;
    EXPECT_EQ(report.complete, budget_ms == 1e6);
  }
}

ProbePassed passed_by(const ProbeReport& report) {
  return {.units = report.passed, .rows = report.rows, .elapsed_ms = report.elapsed_ms};
}

TEST(ProbeTime, GoesOnWhereAnEarlierOneEnded) {
  for (const std::int32_t n_sequences : {1, 4}) {
    const ProbeReport whole = [n_sequences] {
      WrongModel model(nullptr, n_sequences);
      return run_probe(model, {.budget_ms = 1e9});
    }();
    ProbeReport report;
    int n = 0;
    do {  // each has time for a few comparisons
      WrongModel model(nullptr, n_sequences);
      model.set_ms_per_evaluation(50.0);
      const ProbeReport before = report;
      report = run_probe(model, {.budget_ms = 500.0, .passed = passed_by(before)});
      EXPECT_GT(report.passed.size(), before.passed.size());
      EXPECT_GE(report.exactness.width, before.exactness.width);
      EXPECT_GT(report.rows, before.rows);
      EXPECT_GT(report.elapsed_ms, before.elapsed_ms);
      EXPECT_EQ(report.could_go_on(16), !report.complete && report.exactness.verdict() != "exact");
      const bool others = report.exactness.coverage.find("other requests") != std::string::npos;
      EXPECT_TRUE(n_sequences == 1 || others || report.exactness.verdict() == "distributional");
      ASSERT_LT(++n, 100);
    } while (!report.complete);
    EXPECT_GT(n, 3);
    EXPECT_EQ(report.exactness.verdict(), "exact");
    EXPECT_EQ(report.passed.size(), whole.passed.size());
    const auto said = [](const ProbeReport& r) {  // rows differ: truth is made again
      const std::string text = r.exactness.coverage.substr(0, r.exactness.coverage.find(" rows"));
      return text.substr(0, text.rfind(' '));
    };
    EXPECT_EQ(said(report), said(whole));
  }
}

TEST(ProbeTime, ADifferenceWithOthersIsFoundByAContinuedOneToo) {
  const auto wrong = [](const RowFacts& row) { return row.n_items > 1 && row.pos >= 512; };
  ProbeReport report;
  for (int n = 0; n == 0 || report.could_go_on(16); ++n) {
    ASSERT_LT(n, 100);
    WrongModel model(wrong, /*n_sequences=*/4);
    model.set_ms_per_evaluation(50.0);
    report = run_probe(model, {.budget_ms = 100.0, .passed = passed_by(report)});
    EXPECT_EQ(report.exactness.verdict(), "distributional");
  }
  EXPECT_NE(report.exactness.reason.find("with other requests in the batch"), std::string::npos);
  EXPECT_TRUE(report.passed.empty());
}

TEST(ProbeTime, WhatPassedIsNotComparedAgainAndALaterDifferenceCounts) {
  const auto wrong = [](const RowFacts& row) { return row.batch >= 8; };
  WrongModel hurried(wrong);
  hurried.set_ms_per_evaluation(100.0);
  const ProbeReport first = run_probe(hurried, {.budget_ms = 1500.0});
  ASSERT_EQ(first.exactness.verdict(), "exact up to width 4");
  ASSERT_TRUE(first.could_go_on(16));
  WrongModel model(wrong);
  const ProbeReport second = run_probe(model, {.budget_ms = 1e9, .passed = passed_by(first)});
  EXPECT_EQ(second.exactness.verdict(), "exact up to width 7") << second.exactness.coverage;
  EXPECT_TRUE(second.passed.empty());
  EXPECT_FALSE(second.could_go_on(16));
}

}  // namespace
}  // namespace outrider::llama
