#include "plan/drafter_account.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

constexpr double kToken = 70.0;  // ms

struct Total {
  double lost = 0.0;
  double time = 0.0;
};

// Of a drafter that loses 0.4 single tokens in each step in which it is asked, for a long time.
Total ask_for_long(double expected_ms) {
  DrafterAccount account;
  Total total;
  for (int step = 0; step < 100000; ++step) {
    double ms = kToken;
    if (!account.suspended()) {
      account.note_gain(expected_ms, -0.4 * kToken, 1, kToken);
      ms += 0.4 * kToken;
      total.lost += 0.4 * kToken;
    }
    account.note_step(ms);
    total.time += ms;
  }
  return total;
}

TEST(DrafterAccount, OneThatLosesIsSuspendedUntilTheAllowanceHasPaidForIt) {
  DrafterAccount account;
  account.note_gain(-DrafterAccount::kMostLost * kToken, -DrafterAccount::kMostLost * kToken, 10,
                    kToken);
  EXPECT_FALSE(account.suspended()) << "so much may be lost";
  account.note_gain(-1.0, -1.0, 1, kToken);
  EXPECT_TRUE(account.suspended());
  const double lost = DrafterAccount::kMostLost * kToken + 1.0;
  const double until = lost / DrafterAccount::kAllowance;
  account.note_step(until - 10.0);
  EXPECT_TRUE(account.suspended());
  account.note_step(10.1);
  EXPECT_FALSE(account.suspended());
}

TEST(DrafterAccount, ExplorationThatGainsMuchEndsTheSuspensionEarly) {
  DrafterAccount account;
  account.note_gain(-3.0 * kToken, -3.0 * kToken, 10, kToken);
  ASSERT_TRUE(account.suspended());
  account.note_gain(3.5 * kToken, 3.5 * kToken, 4, kToken);
  account.note_step(1.0);
  EXPECT_FALSE(account.suspended());
}

TEST(DrafterAccount, BadLuckAloneSuspendsItLaterAndForNoLonger) {
  DrafterAccount account;
  double lost = 0.0;
  while (!account.suspended()) {
    account.note_gain(0.1 * kToken, -0.4 * kToken, 1, kToken);
    lost += 0.4 * kToken;
  }
  EXPECT_NEAR(lost, DrafterAccount::kMostLostMeasured * kToken, 0.41 * kToken);
  const double until = (DrafterAccount::kMostLost + 0.4) * kToken / DrafterAccount::kAllowance;
  account.note_step(until);
  EXPECT_FALSE(account.suspended());
}

// Wrong for ever, and always expected to be right: the clock decides.
TEST(DrafterAccount, WhateverIsExpectedTheLossIsBounded) {
  const Total total = ask_for_long(0.5 * kToken);
  EXPECT_LE(total.lost, DrafterAccount::kAllowance * total.time +
                            (DrafterAccount::kMostLostMeasured + 1.0) * kToken);
}

TEST(DrafterAccount, GoodLuckDoesNotPayForAnExpectedLoss) {
  DrafterAccount account;
  for (int i = 0; i < 21; ++i) account.note_gain(-0.1 * kToken, kToken, 2, kToken);
  EXPECT_TRUE(account.suspended());
  account.note_step(211.0 * kToken);
  EXPECT_FALSE(account.suspended());
}

TEST(DrafterAccount, AGoodPastPaysForNoMoreThanItsBound) {
  DrafterAccount account;
  for (int i = 0; i < 1000; ++i) account.note_gain(kToken, kToken, 3, kToken);
  double lost = 0.0;
  while (!account.suspended()) {
    account.note_gain(-0.5 * kToken, -0.5 * kToken, 1, kToken);
    lost += 0.5 * kToken;
  }
  EXPECT_LE(lost, (DrafterAccount::kMostLost + DrafterAccount::kMostGained + 0.5) * kToken);
  EXPECT_GE(lost, DrafterAccount::kMostLost * kToken);
}

TEST(DrafterAccount, WhatIsLostInAllIsBoundedByTheAllowance) {
  const Total total = ask_for_long(-0.4 * kToken);
  EXPECT_LE(total.lost,
            DrafterAccount::kAllowance * total.time + (DrafterAccount::kMostLost + 1.0) * kToken);
  EXPECT_GT(total.lost, 0.49 * DrafterAccount::kAllowance * total.time)
      << "it is asked again now and then";
}

TEST(DrafterAccount, ExplorationTakesItsShareAndNoMore) {
  DrafterAccount account;
  account.note_pass(/*first=*/true, 1, 0.3 * kToken);
  double spent = 0.0;
  double time = 0.0;
  int explored = 0;
  for (int step = 0; step < 10000; ++step) {
    account.note_step(kToken);
    time += kToken;
    const std::optional<double> expected = account.begin_exploration(0, kToken);
    if (!expected) continue;
    account.end_exploration(*expected, 0.5 * kToken);  // it takes more than was expected
    spent += 0.5 * kToken;
    ++explored;
  }
  EXPECT_LE(spent, DrafterAccount::kAllowance * time + DrafterAccount::kExploredAtOnce * kToken);
  EXPECT_GT(explored, 100);
}

TEST(DrafterAccount, ATextThatTheDrafterDoesNotKnowIsReadWhenTheRestOfItPaysForThat) {
  DrafterAccount account;
  account.note_reading(1000, 1000 * 0.05 * kToken);
  EXPECT_DOUBLE_EQ(account.reading_ms(200, kToken), 10.0 * kToken);
  EXPECT_TRUE(account.may_read(200, 100, kToken)) << "an unknown drafter is expected to gain";
  for (int i = 0; i < 100; ++i)
    account.note_gain(0.2 * kToken, 0.2 * kToken, 2, kToken);  // 0.1 a token
  EXPECT_TRUE(account.may_read(200, 150, kToken));
  EXPECT_FALSE(account.may_read(200, 50, kToken)) << "too little is left of the text";
  for (int i = 0; i < 300; ++i) account.note_gain(-0.1 * kToken, -0.1 * kToken, 1, kToken);
  EXPECT_FALSE(account.may_read(20, 1000, kToken)) << "one that loses reads nothing";
}

// The first request would pay for what it is too short to use.
TEST(DrafterAccount, ALongPromptIsNotReadForAShortAnswerWhileNothingOfItIsKnown) {
  DrafterAccount account;
  EXPECT_FALSE(account.may_read(300, 16, kToken));
  EXPECT_TRUE(account.may_read(60, 16, kToken));
  EXPECT_TRUE(account.may_read(2000, 256, kToken));
  EXPECT_FALSE(account.begin_exploration(300, kToken));
  const std::optional<double> expected = account.begin_exploration(60, kToken);
  ASSERT_TRUE(expected);
  account.note_pass(/*first=*/true, 1, 0.3 * kToken);
  account.note_reading(60, 9.0 * kToken);
  account.end_exploration(*expected, 9.3 * kToken);
  EXPECT_FALSE(account.begin_exploration(0, kToken)) << "what it took is counted";
}

TEST(DrafterAccount, FurtherPassesHaveTheirOwnCostOnceSeen) {
  DrafterAccount account;
  EXPECT_EQ(account.pass_ms(true, 1), 0.0);
  account.note_pass(/*first=*/true, 1, 20.0);
  EXPECT_DOUBLE_EQ(account.pass_ms(false, 1), 20.0);
  account.note_pass(/*first=*/false, 1, 10.0);
  EXPECT_DOUBLE_EQ(account.pass_ms(false, 1), 10.0);
  EXPECT_DOUBLE_EQ(account.pass_ms(true, 1), 20.0);
  account.note_pass(/*first=*/true, 4, 40.0);
  EXPECT_DOUBLE_EQ(account.pass_ms(true, 4), 10.0) << "each request's part";
}

// Not let into a long text for what another run lost, it could never show that it has become
// better.
TEST(DrafterAccount, ALossOfAnotherRunIsForgottenWhereNoneConfirmsIt) {
  DrafterExperience kept{.first_passes = {{.width = 1, .ms = 5.6}},
                         .reading_ms = 0.73,
                         .gained_ms = -6000.0,
                         .gained_tokens = 60.0};
  DrafterAccount fresh;
  fresh.note_pass(true, 1, 5.6);
  ASSERT_TRUE(fresh.may_read(300, 256, kToken));
  int runs = 0;
  for (bool may_read = false; !may_read && runs < 20; ++runs) {
    DrafterAccount account;
    account.recall(kept);
    may_read = account.may_read(300, 256, kToken);
    EXPECT_TRUE(runs > 0 || !may_read) << "it is not forgotten at once";
    account.tell(&kept);
  }
  EXPECT_LE(runs, 4);
  EXPECT_NEAR(kept.reading_ms, 0.73, 1e-9);
}

}  // namespace
}  // namespace outrider
