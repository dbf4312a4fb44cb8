#include "draft/base/drafter_plan.h"

#include <gtest/gtest.h>

#include <array>

namespace outrider {
namespace {

constexpr std::array<std::string_view, 3> kKnown = {"suffix", "ngram-cache", "draft-model"};

TEST(DrafterPlan, CommasMergeAndSlashesFallBack) {
  const Result<DrafterPlan> plan = parse_drafter_plan("suffix/ngram-cache,draft-model", kKnown);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->chains.size(), 2U);
  EXPECT_EQ(plan->chains[0], (std::vector<std::string>{"suffix", "ngram-cache"}));
  EXPECT_EQ(plan->chains[1], (std::vector<std::string>{"draft-model"}));
  EXPECT_EQ(to_string(*plan), "suffix/ngram-cache,draft-model");
  EXPECT_TRUE(plan->mentions("ngram-cache"));
  EXPECT_FALSE(plan->mentions("recycle"));
}

TEST(DrafterPlan, WhatIsWrongIsNamed) {
  const auto message = [](std::string_view text) {
    return parse_drafter_plan(text, kKnown).status().message();
  };
  EXPECT_EQ(message("sufix"),
            "drafter is 'sufix', but 'sufix' is no drafter; give suffix, ngram-cache or "
            "draft-model, several with ',' (merged) or '/' (fall-back) between them");
  EXPECT_NE(message("").find("a name is missing"), std::string::npos);
  EXPECT_NE(message("suffix,").find("a name is missing"), std::string::npos);
  EXPECT_NE(message("/suffix").find("a name is missing"), std::string::npos);
  EXPECT_NE(message("suffix, draft-model").find("' draft-model' is no drafter"), std::string::npos);
  EXPECT_NE(message("suffix/draft-model,suffix").find("'suffix' is there twice"),
            std::string::npos);
  EXPECT_NE(message("suffix/suffix").find("'suffix' is there twice"), std::string::npos);
}

}  // namespace
}  // namespace outrider
