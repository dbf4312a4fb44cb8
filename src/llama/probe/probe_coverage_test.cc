#include "llama/probe/probe_coverage.h"

#include <gtest/gtest.h>

namespace outrider::llama {
namespace {

TEST(ProbeCoverage, SaysWhatWasComparedEverywhereAndWhatOnlySomewhere) {
  ProbeCoverage coverage({24, 254, 520});
  EXPECT_EQ(coverage.text(16), "no width; 0 rows");
  EXPECT_EQ(coverage.widest_everywhere(16), 1);

  coverage.add({.start = 0, .width = 2});
  coverage.add({.start = 0, .width = 4});
  coverage.add_rows(10);
  EXPECT_EQ(coverage.text(16), "widths 2, 4 after 24 cells; 10 rows");
  EXPECT_EQ(coverage.widest_everywhere(16), 1) << "two places were not seen at all";

  coverage.add({.start = 2, .width = 2});
  coverage.add({.start = 2, .width = 2});
  EXPECT_EQ(coverage.text(16), "widths 2 after 24 and 520 cells, 4 after some of them; 10 rows");
  coverage.add({.start = 1, .width = 3});
  EXPECT_EQ(coverage.text(16), "widths 2-4 after some of 24, 254 and 520 cells; 10 rows");
  coverage.add({.start = 1, .width = 2});
  EXPECT_EQ(coverage.widest_everywhere(16), 2);
  coverage.add({.kind = ProbeUnit::Kind::kOthers, .start = 1});
  coverage.add({.kind = ProbeUnit::Kind::kPiece, .width = 65});
  coverage.add({.kind = ProbeUnit::Kind::kPiece, .width = 33});
  EXPECT_EQ(coverage.text(16),
            "widths 2 after 24, 254 and 520 cells, 3, 4 after some of them; 10 rows; with other "
            "requests in the batch; prompt pieces to 65");
}

TEST(ProbeCoverage, LeavesOutWhatLiesOverTheLimit) {
  ProbeCoverage coverage({24});
  for (const std::int32_t width : {2, 3, 4, 8}) coverage.add({.start = 0, .width = width});
  EXPECT_EQ(coverage.text(3), "widths 2, 3 after 24 cells; 0 rows");
  EXPECT_EQ(coverage.widest_everywhere(7), 4);
  EXPECT_EQ(coverage.widest_everywhere(1), 1);
  EXPECT_EQ(coverage.text(1), "no width; 0 rows");
}

}  // namespace
}  // namespace outrider::llama
