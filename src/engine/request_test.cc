#include "engine/request.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider {
namespace {

TEST(ExactnessOf, ATextIsNoMoreExactThanTheRuleThatMadeIt) {
  const Exactness target{
      .kind = Exactness::Kind::kExact, .width = 16, .coverage = "widths 2-16", .reason = ""};
  EXPECT_EQ(exactness_of({.enabled = true}, target).verdict(), "exact");
  for (const AcceptanceRule rule : {AcceptanceRule::kRejection, AcceptanceRule::kBlock}) {
    const Exactness held = exactness_of({.enabled = true, .rule = rule}, target);
    EXPECT_EQ(held.verdict(), "distributional");
    EXPECT_EQ(held.coverage, "widths 2-16");
    EXPECT_EQ(held.reason, "the rule " +
                               std::string(rule == AcceptanceRule::kBlock ? "block" : "rejection") +
                               " keeps the distribution, not the text of plain decoding");
    // Where nobody guesses, the rule is not used.
    EXPECT_EQ(exactness_of({.enabled = false, .rule = rule}, target).verdict(), "exact");
    // Where the drafters were lost half-way, it was.
    EXPECT_EQ(exactness_of({.enabled = false, .rule = rule, .drafted = 5}, target).verdict(),
              "distributional");
  }
}

}  // namespace
}  // namespace outrider
