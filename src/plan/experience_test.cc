#include "plan/experience.h"

#include <gtest/gtest.h>

#include <limits>
#include <locale>
#include <string>

#include "plan/planner.h"

namespace outrider {
namespace {

constexpr DrafterMask kFirst = 1;

// A planner whose first drafter guessed `n` times, one token of a stated confidence, and was right
// in `right` of four.
Planner taught(int n, int right) {
  Planner planner;
  RequestPlan plan;
  for (int i = 0; i < n; ++i) {
    TokenTree tree(0);
    tree.add(kRoot, 1, 0.8f, kFirst);
    const Token said = i % 4 < right ? 1 : 2;
    planner.learn(tree, std::vector<Token>{said}, kFirst, plan);
    planner.account(0).note_pass(true, 1, 5.0, planner.target_cost());
    planner.account(0).note_pass(false, 1, 4.0, planner.target_cost());
    planner.account(0).note_gain(
        {.expected_ms = 2.0, .measured_ms = 1.0, .tokens = 1, .worth_ms = 30.0, .token_ms = 30.0});
  }
  planner.account(0).note_reading(100, 70.0, planner.target_cost());
  return planner;
}

const GuessClaim kClaim{.drafter = 0, .depth = 1, .confidence = 0.8f};

TEST(Experience, AnUnknownDrafterHasNone) { EXPECT_TRUE(Planner().experience(0).empty()); }

TEST(Experience, APlannerThatRecallsItExpectsWhatTheOtherOneDid) {
  for (const int right : {0, 1, 3, 4}) {
    const Planner before = taught(2000, right);
    Planner after;
    const std::optional<DrafterExperience> read = experience_from(to_text(before.experience(0)));
    ASSERT_TRUE(read);
    after.recall(0, *read);
    EXPECT_NEAR(after.acceptance().chance(kClaim), before.acceptance().chance(kClaim), 0.08);
    EXPECT_NEAR(after.acceptance().prediction(0, 1), before.acceptance().prediction(0, 1), 0.2);
    EXPECT_NEAR(after.pass_ms(0, true, 1), 5.0, 0.01);
    EXPECT_NEAR(after.pass_ms(0, false, 1), 4.0, 0.01);
    EXPECT_NEAR(after.account(0).reading_ms(100, CostCurve()), 70.0, 0.01);
    // Others are not concerned.
    EXPECT_TRUE(after.experience(1).empty());
  }
}

// As many languages write them: 1.234,5.
class CommaNumbers : public std::numpunct<char> {
 protected:
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Experience, IsTheSameTextWhateverTheLocaleOfTheApp) {
  const DrafterExperience experience = taught(2000, 3).experience(0);
  const std::string text = to_text(experience);
  const std::locale before =
      std::locale::global(std::locale(std::locale::classic(), new CommaNumbers));
  const std::string with_commas = to_text(experience);
  const std::optional<DrafterExperience> read = experience_from(text);
  std::locale::global(before);
  EXPECT_EQ(with_commas, text);
  ASSERT_TRUE(read);
  EXPECT_EQ(to_text(*read), text);
}

// A drafter that was always right has counts at their limits, which rounding must not push beyond.
TEST(Experience, LastsForManyRuns) {
  Planner planner = taught(997, 4);
  for (int run = 0; run < 50; ++run) {
    const std::optional<DrafterExperience> read = experience_from(to_text(planner.experience(0)));
    ASSERT_TRUE(read);
    Planner next;
    next.recall(0, *read);
    ASSERT_FALSE(next.experience(0).empty()) << run;
    RequestPlan plan;
    for (int i = 0; i < 13 * run; ++i) {
      TokenTree tree(0);
      tree.add(kRoot, 1, 0.8f, kFirst);
      next.learn(tree, std::vector<Token>{1}, kFirst, plan);
    }
    planner = next;
  }
  EXPECT_GT(planner.acceptance().chance(kClaim), 0.95);
}

TEST(Experience, WhatIsSeenNowSoonOutweighsIt) {
  Planner planner;
  planner.recall(0, taught(2000, 4).experience(0));
  EXPECT_GT(planner.acceptance().chance(kClaim), 0.9);
  RequestPlan plan;
  for (int i = 0; i < 80; ++i) {
    TokenTree tree(0);
    tree.add(kRoot, 1, 0.8f, kFirst);
    planner.learn(tree, std::vector<Token>{2}, kFirst, plan);
  }
  EXPECT_LT(planner.acceptance().chance(kClaim), 0.4);
  EXPECT_LT(planner.acceptance().prediction(0, 1), 0.35);
}

TEST(Experience, WhatIsDamagedIsAsNothing) {
  const std::string text = to_text(taught(50, 3).experience(0));
  ASSERT_TRUE(experience_from(text));
  EXPECT_FALSE(experience_from(""));
  EXPECT_FALSE(experience_from("drafter-experience 3\n"));
  for (std::size_t n = 0; n < text.find("gained"); n += 7) {  // cut off
    const std::optional<DrafterExperience> read = experience_from(text.substr(0, n));
    EXPECT_FALSE(read) << n;
  }
  for (const char* wrong : {"nan ", "-3 ", "x "}) {
    std::string changed = text;
    const std::size_t at = changed.find("reading 1 ") + 10;
    changed.replace(at, 1, wrong);
    EXPECT_FALSE(experience_from(changed)) << wrong;
  }
}

TEST(Experience, ImpossibleCountsAreNotRecalled) {
  const DrafterExperience good = taught(50, 3).experience(0);
  for (const double wrong : {-1.0, 1e30, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    DrafterExperience bad = good;
    bad.acceptance[0] = wrong;
    Planner planner;
    planner.recall(0, bad);
    EXPECT_TRUE(planner.experience(0).empty()) << wrong;
  }
  DrafterExperience longer = good;
  longer.acceptance.push_back(0.0);
  Planner planner;
  planner.recall(0, longer);
  EXPECT_TRUE(planner.experience(0).empty());
}

}  // namespace
}  // namespace outrider
