// The probe on a model whose rows are made wrong on purpose: it must find each kind of difference,
// and nothing where there is none.
#include "llama/probe/run_probe_test.h"

#include <gtest/gtest.h>

#include <vector>

#include "testing/wrong_model.h"

namespace outrider::llama {
namespace {

constexpr std::int32_t kVocab = testing::WrongModel::kVocab;

using testing::RowFacts;
using testing::WrongModel;

TEST(Probe, FindsNothingWhereThereIsNothing) {
  WrongModel model(nullptr);
  const ProbeReport report = run_probe(model);
  EXPECT_EQ(report.exactness.verdict(), "exact");
  EXPECT_EQ(report.exactness.width, 16);
  EXPECT_EQ(report.exactness.reason, "");
  EXPECT_EQ(report.exactness.coverage,
            "widths 2-4, 8, 16 after 24, 254 and 520 cells, 5-7, 9-15 after some of them; " +
                std::to_string(report.rows) + " rows; prompt pieces to 512; 0.0 s");
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.everywhere, 16);
  EXPECT_EQ(report.longest_piece, 512);
  EXPECT_GT(report.rows, 400);
}

TEST(Probe, OneUnitInTheLastPlaceFromWidthThreeOnLimitsTheVerdictToTwo) {
  WrongModel model([](const RowFacts& row) { return row.batch >= 3; });
  const ProbeReport report = run_probe(model);
  EXPECT_EQ(report.exactness.verdict(), "exact up to width 2");
  EXPECT_EQ(report.everywhere, 2);
  EXPECT_NE(report.exactness.reason.find("a batch of 3 after 24 cells"), std::string::npos)
      << report.exactness.reason;
  EXPECT_TRUE(report.pieces_differ);
  EXPECT_EQ(report.longest_piece, 0);
}

TEST(Probe, EveryLimitIsFoundExactly) {
  for (std::int32_t first_wrong = 2; first_wrong <= 16; ++first_wrong) {
    WrongModel model([=](const RowFacts& row) { return row.batch >= first_wrong; });
    const ProbeReport report = run_probe(model);
    EXPECT_EQ(report.exactness.verdict(),
              first_wrong == 2 ? "distributional"
                               : "exact up to width " + std::to_string(first_wrong - 1));
    EXPECT_EQ(report.exactness.width, first_wrong - 1);
  }
}

TEST(Probe, AWidthThatIsWrongAloneLimitsAllWiderOnes) {
  for (std::int32_t wrong = 2; wrong <= 16; ++wrong) {
    WrongModel model([=](const RowFacts& row) { return row.batch == wrong; });
    EXPECT_EQ(run_probe(model).exactness.width, wrong - 1);
  }
}

TEST(Probe, ADifferenceBeyond512CellsIsFound) {
  WrongModel model([](const RowFacts& row) { return row.batch > 1 && row.pos >= 512; });
  const ProbeReport report = run_probe(model);
  EXPECT_EQ(report.exactness.verdict(), "distributional");
  EXPECT_NE(report.exactness.reason.find("after 520 cells"), std::string::npos);
}

TEST(Probe, ADifferenceBehind256CellsIsFound) {
  // As with an f16 cache: a single token over more than 256 cells takes another path.
  WrongModel model([](const RowFacts& row) { return row.batch == 1 && row.pos >= 256; });
  const ProbeReport report = run_probe(model);
  EXPECT_EQ(report.exactness.verdict(), "distributional");
  EXPECT_NE(report.exactness.reason.find("after 254 cells"), std::string::npos);
}

TEST(Probe, ARareDifferenceIsFound) {
  // Every seventh batch of four, a third of its rows.
  WrongModel model([](const RowFacts& row) {
    return row.batch == 4 && row.evaluation % 7 == 0 && row.pos % 3 == 0;
  });
  EXPECT_LE(run_probe(model).exactness.width, 3);
}

TEST(Probe, ARollbackThatLeavesSomethingBehindIsFound) {
  WrongModel model([](const RowFacts& row) { return row.after_rollback; });
  const ProbeReport report = run_probe(model);
  EXPECT_EQ(report.exactness.verdict(), "distributional");
  EXPECT_NE(report.exactness.reason.find("and a rollback"), std::string::npos)
      << report.exactness.reason;
}

TEST(Probe, TreesAreComparedWhereTheModelTakesThem) {
  WrongModel right([](const RowFacts&) { return false; }, 1, 1024, /*max_leaves=*/8);
  const ProbeReport report = run_probe(right);
  EXPECT_EQ(report.exactness.verdict(), "exact");
  EXPECT_NE(report.exactness.coverage.find("trees to 8 nodes"), std::string::npos)
      << report.exactness.coverage;

  WrongModel chains([](const RowFacts& row) { return row.branches; });
  EXPECT_EQ(run_probe(chains).exactness.verdict(), "exact") << "it takes no trees";
  EXPECT_EQ(run_probe(chains).exactness.coverage.find("trees"), std::string::npos);
}

TEST(Probe, ATreeThatDiffersLimitsTheVerdict) {
  WrongModel model([](const RowFacts& row) { return row.branches && row.batch == 8; }, 1, 1024,
                   /*max_leaves=*/8);
  const ProbeReport report = run_probe(model);
  EXPECT_EQ(report.exactness.verdict(), "exact up to width 7");
  EXPECT_NE(report.exactness.reason.find("a tree of 8 nodes"), std::string::npos)
      << report.exactness.reason;
}

TEST(Probe, ModelsThatKeepLessAreProbedByReadingAgain) {
  for (const Rollback rollback : {Rollback::kSnapshot, Rollback::kSaved}) {
    WrongModel right([](const RowFacts&) { return false; }, 3, 1024, 1, rollback);
    EXPECT_EQ(run_probe(right).exactness.verdict(), "exact");
    WrongModel wrong([](const RowFacts& row) { return row.batch == 6 && row.after_rollback; }, 1,
                     1024, 1, rollback);
    EXPECT_NE(run_probe(wrong).exactness.verdict(), "exact");
  }
}

TEST(Probe, SingleStepsThatDoNotRepeatAreNotExact) {
  // Rows of any width change with time, all alike: only repeating shows it.
  WrongModel model([](const RowFacts& row) { return row.evaluation > 60; });
  const ProbeReport report = run_probe(model);
  EXPECT_EQ(report.exactness.verdict(), "distributional");
}

TEST(Probe, OtherRequestsInTheBatchAreCompared) {
  WrongModel exact(nullptr, /*n_sequences=*/4);
  EXPECT_NE(run_probe(exact).exactness.coverage.find("with other requests in the batch"),
            std::string::npos);
  WrongModel model([](const RowFacts& row) { return row.n_items > 1; }, /*n_sequences=*/4);
  const ProbeReport report = run_probe(model);
  EXPECT_EQ(report.exactness.verdict(), "distributional");
  EXPECT_NE(report.exactness.reason.find("with other requests in the batch"), std::string::npos);
}

TEST(Probe, WithSeveralSequencesNothingIsExactThatWasNotComparedWithOthers) {
  int open = 0;
  for (double budget_ms = 100.0; budget_ms < 10000.0; budget_ms += 100.0) {
    WrongModel model(nullptr, /*n_sequences=*/4);
    model.set_ms_per_evaluation(100.0);
    const ProbeReport report = run_probe(model, {.budget_ms = budget_ms});
    const std::string& reason = report.exactness.reason;
    const bool compared = reason.find("other requests were not") == std::string::npos;
    if (compared || report.everywhere < 2) continue;
    ++open;
    EXPECT_EQ(report.exactness.verdict(), "distributional") << report.exactness.coverage;
    EXPECT_EQ(report.exactness.width, report.everywhere) << "for the planner, which keeps to it";
    EXPECT_TRUE(report.could_go_on(16));
  }
  EXPECT_GT(open, 0);
}

TEST(Probe, OtherRequestsStayWithinTheExactWidth) {
  WrongModel model([](const RowFacts& row) { return row.batch >= 4; }, /*n_sequences=*/4);
  EXPECT_EQ(run_probe(model).exactness.verdict(), "exact up to width 3");
}

TEST(Probe, LongPromptPiecesThatDifferAreReportedAndDoNotChangeTheVerdict) {
  WrongModel model([](const RowFacts& row) { return row.longest_prefix > 40 && row.pos < 200; });
  const ProbeReport report = run_probe(model);
  EXPECT_EQ(report.exactness.verdict(), "exact");
  EXPECT_TRUE(report.pieces_differ);
  EXPECT_EQ(report.longest_piece, 33);
  EXPECT_NE(report.exactness.coverage.find("prompt pieces to 33, longer ones differ"),
            std::string::npos);
}

TEST(Probe, CopiedCellsReplaceALongText) {
  WrongModel model(nullptr);
  std::vector<std::int32_t> asked;
  ProbeOptions options{.deepen = [&](std::int32_t cells) {
    asked.push_back(cells);
    EXPECT_EQ(model.length(0), 24);
    return Status();
  }};
  EXPECT_TRUE(run_probe(model, options).complete);
  EXPECT_FALSE(asked.empty());
  for (const std::int32_t cells : asked) EXPECT_TRUE(cells == 254 || cells == 520) << cells;

  WrongModel cannot([](const RowFacts& row) { return row.batch > 1 && row.pos >= 512; });
  options.deepen = [](std::int32_t) { return unsupported("no state to copy"); };
  EXPECT_EQ(run_probe(cannot, options).exactness.verdict(), "distributional")
      << "the text itself is made long enough";

  options.deepen = [](std::int32_t) { return internal_error("broken"); };
  options.now_ms = [] { return 0.0; };
  EXPECT_EQ(probe_exactness(model, options).status().code(), StatusCode::kInternal);
}

TEST(Probe, PlacesThatTheContextDoesNotReachAreLeftOut) {
  WrongModel model(nullptr, /*n_sequences=*/1, /*n_ctx=*/300);
  const std::string coverage = run_probe(model).exactness.coverage;
  EXPECT_NE(coverage.find("after 24 and 254 cells"), std::string::npos) << coverage;
}

TEST(Probe, OnlyUsableTokensAreEvaluated) {
  WrongModel model(nullptr);
  run_probe(model, {.usable = [](Token token) { return token >= 9; }});
  EXPECT_GE(model.least_token(), 9);
  WrongModel none(nullptr);
  run_probe(none, {.usable = [](Token) { return false; }});
  EXPECT_LT(none.least_token(), 9) << "better any token than no probe";
}

TEST(Probe, CancelEndsItAtOnceAndLeavesTheModelEmpty) {
  for (const std::int64_t after : {0, 1, 7, 30, 100}) {
    WrongModel model(nullptr);
    std::atomic<bool> cancel = after == 0;
    model.fake().on_evaluate([&] {
      if (model.fake().evaluations() >= after) cancel = true;
    });
    const Result<ProbeReport> report =
        probe_exactness(model, {.now_ms = [] { return 0.0; }, .cancel = &cancel});
    EXPECT_EQ(report.status().code(), StatusCode::kCancelled);
    EXPECT_EQ(model.length(0), 0);
    EXPECT_LE(model.fake().evaluations(), after + 1);
  }
}

TEST(Probe, AFailureOfTheModelIsReturned) {
  WrongModel model(nullptr);
  model.fake().fail_evaluate({Status(), Status(), internal_error("the device is gone")});
  const Result<ProbeReport> report = probe_exactness(model, {});
  EXPECT_EQ(report.status().code(), StatusCode::kInternal);
  EXPECT_EQ(report.status().message(), "the device is gone");
}

TEST(Probe, ProgressNeverFallsAndEndsAtOne) {
  WrongModel model([](const RowFacts& row) { return row.batch >= 9; });
  model.set_ms_per_evaluation(10.0);
  std::vector<double> seen;
  run_probe(model, {.progress = [&](double fraction) { seen.push_back(fraction); }});
  ASSERT_GT(seen.size(), 10u);
  EXPECT_GE(seen.front(), 0.0);
  EXPECT_EQ(seen.back(), 1.0);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(Probe, TheSameSeedEvaluatesTheSame) {
  std::vector<std::vector<std::int32_t>> evaluations;
  std::vector<std::int64_t> rows;
  for (int i = 0; i < 2; ++i) {
    WrongModel model([](const RowFacts& row) { return row.batch >= 6; });
    rows.push_back(run_probe(model).rows);
    evaluations.push_back(model.tokens_in_evaluations());
  }
  EXPECT_EQ(rows[0], rows[1]);
  EXPECT_EQ(evaluations[0], evaluations[1]);
}

TEST(Probe, RefusesWhatItCannotCompare) {
  WrongModel model(nullptr);
  for (const std::int32_t widest : {-1, 0, 1, 65}) {
    EXPECT_EQ(probe_exactness(model, {.widest = widest}).status().code(),
              StatusCode::kInvalidArgument);
  }
  testing::FakeModel stuck({.n_vocab = kVocab,
                            .n_ctx = 100,
                            .n_batch = 64,
                            .n_sequences = 1,
                            .rollback = Rollback::kNone,
                            .max_width = 16,
                            .rollback_reason = ""},
                           testing::random_rows(kVocab, 1, 1.0f));
  EXPECT_EQ(probe_exactness(stuck, {}).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace outrider::llama
