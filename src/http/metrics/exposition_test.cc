#include "http/metrics/exposition.h"

#include <gtest/gtest.h>

#include <limits>

namespace outrider::http {
namespace {

TEST(Exposition, AFamilyHasHelpTypeAndSamples) {
  Exposition out;
  out.family("a:b_total", "counter", "Of \\ and\nlines.");
  out.sample({}, 3);
  out.sample({{"model", "x"}, {"status", "200"}}, 0.25);
  EXPECT_EQ(out.text(),
            "# HELP a:b_total Of \\\\ and\\nlines.\n"
            "# TYPE a:b_total counter\n"
            "a:b_total 3\n"
            "a:b_total{model=\"x\",status=\"200\"} 0.25\n");
}

TEST(Exposition, ALabelCannotEndItsLine) {
  Exposition out;
  out.family("a", "gauge", "A.");
  out.sample({{"model", "\"} 1\nb 2\\"}}, 1);
  EXPECT_EQ(out.text(), "# HELP a A.\n# TYPE a gauge\na{model=\"\\\"} 1\\nb 2\\\\\"} 1\n");
}

TEST(Exposition, NumbersThatAreNoneHaveNames) {
  Exposition out;
  out.family("a", "gauge", "A.");
  out.sample({}, std::numeric_limits<double>::infinity());
  out.sample({}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_NE(out.text().find("a +Inf\na NaN\n"), std::string::npos);
}

TEST(Exposition, AHistogramCountsUpwardsAndEndsWithAll) {
  Histogram histogram;
  histogram.add(0.0005);  // a bound belongs to what is below it
  histogram.add(0.03, 4);
  histogram.add(10'000.0);  // above all
  EXPECT_EQ(histogram.count(), 6);
  EXPECT_DOUBLE_EQ(histogram.sum(), 0.0005 + 4 * 0.03 + 10'000.0);
  Exposition out;
  out.family("t", "histogram", "T.");
  out.sample({{"model", "m"}}, histogram);
  for (const char* line :
       {"t_bucket{model=\"m\",le=\"0.0005\"} 1\n", "t_bucket{model=\"m\",le=\"0.02\"} 1\n",
        "t_bucket{model=\"m\",le=\"0.05\"} 5\n", "t_bucket{model=\"m\",le=\"600\"} 5\n",
        "t_bucket{model=\"m\",le=\"+Inf\"} 6\n", "t_count{model=\"m\"} 6\n"}) {
    EXPECT_NE(out.text().find(line), std::string::npos) << line << out.text();
  }
}

}  // namespace
}  // namespace outrider::http
