#include "plan/drafter_account.h"

#include <gtest/gtest.h>

#include "testing/drafter_figures.h"

namespace outrider {
namespace {

using testing::kToken;
using testing::target;
using testing::unread;

// An account behind so much time that what it risks is at its limits.
DrafterAccount aged() {
  DrafterAccount account;
  account.note_step(1000.0 * kToken);
  return account;
}

void gain(DrafterAccount& account, double expected_ms, double measured_ms, std::int64_t tokens,
          std::int32_t n_ready = 1) {
  account.note_gain({.expected_ms = expected_ms,
                     .measured_ms = measured_ms,
                     .tokens = tokens,
                     .n_ready = n_ready,
                     .worth_ms = kToken,
                     .token_ms = kToken});
}

struct Total {
  double lost = 0.0;
  double time = 0.0;
};

// Of a drafter that loses 0.4 single tokens in each step in which it is asked, for a long time.
Total ask_for_long(double expected_ms) {
  DrafterAccount account = aged();
  Total total;
  for (int step = 0; step < 100000; ++step) {
    double ms = kToken;
    if (!account.suspended()) {
      gain(account, expected_ms, -0.4 * kToken, 1);
      ms += 0.4 * kToken;
      total.lost += 0.4 * kToken;
    }
    account.note_step(ms);
    total.time += ms;
  }
  return total;
}

TEST(DrafterAccount, BadLuckAloneSuspendsItLaterAndForNoLonger) {
  DrafterAccount account = aged();
  double lost = 0.0;
  while (!account.suspended()) {
    gain(account, 0.1 * kToken, -0.4 * kToken, 1);
    lost += 0.4 * kToken;
  }
  EXPECT_NEAR(lost, kMeasuredLimits.most_lost * kToken, 0.41 * kToken);
  const double until = (kExpectedLimits.most_lost + 0.4) * kToken / DrafterAccount::kAllowance;
  account.note_step(until);
  EXPECT_FALSE(account.suspended());
}

TEST(DrafterAccount, OneThatWasNeverRightMayLoseTwoTokensUntilItIs) {
  DrafterGain wrong{.expected_ms = 0.1 * kToken,
                    .measured_ms = -0.4 * kToken,
                    .tokens = 1,
                    .worth_ms = kToken,
                    .token_ms = kToken};
  for (const bool ever_right : {false, true}) {
    wrong.ever_right = ever_right;
    DrafterAccount account = aged();
    double lost = 0.0;
    while (!account.suspended()) {
      account.note_gain(wrong);
      lost += 0.4 * kToken;
    }
    const double limit = ever_right ? kMeasuredLimits.most_lost : kNeverRightLost;
    EXPECT_NEAR(lost, limit * kToken, 0.41 * kToken);
    account.note_step(0.1 * kToken);
    EXPECT_TRUE(account.suspended());
    if (ever_right) continue;
    DrafterGain first_hit = wrong;
    first_hit.ever_right = true;
    account.note_gain(first_hit);
    account.note_step(0.1 * kToken);
    EXPECT_FALSE(account.suspended()) << "so much may be lost by one that was right";
  }
}

// Such a suspension would end with its step.
TEST(DrafterAccount, ATokenOrThreeThatGuessesLoseByChanceAtTheBeginningSuspendNobody) {
  for (const double lost : {1.6, 2.5, 3.9}) {
    DrafterAccount account;
    gain(account, 0.1 * kToken, -lost * kToken, 1);
    EXPECT_FALSE(account.suspended()) << lost;
    account.note_step((1.0 + lost) * kToken);
    EXPECT_FALSE(account.suspended()) << lost;
  }
}

TEST(DrafterAccount, MoreThanThatAtTheBeginningSuspendsBeyondTheStep) {
  DrafterAccount account;
  gain(account, 0.1 * kToken, -4.5 * kToken, 1);
  EXPECT_TRUE(account.suspended());
  account.note_step(5.5 * kToken);
  EXPECT_TRUE(account.suspended());
  account.note_step(0.5 * kToken / DrafterAccount::kAllowance);
  EXPECT_FALSE(account.suspended());
}

// Wrong for ever, and always expected to be right: the clock decides.
TEST(DrafterAccount, WhateverIsExpectedTheLossIsBounded) {
  const Total total = ask_for_long(0.5 * kToken);
  EXPECT_LE(total.lost,
            DrafterAccount::kAllowance * total.time + (kMeasuredLimits.most_lost + 1.0) * kToken);
}

TEST(DrafterAccount, GoodLuckDoesNotPayForAnExpectedLoss) {
  DrafterAccount account = aged();
  for (int i = 0; i < 21; ++i) gain(account, -0.1 * kToken, kToken, 2);
  EXPECT_TRUE(account.suspended());
  account.note_step(211.0 * kToken);
  EXPECT_FALSE(account.suspended());
}

TEST(DrafterAccount, WhatIsLostInAllIsBoundedByTheAllowance) {
  const Total total = ask_for_long(-0.4 * kToken);
  EXPECT_LE(total.lost,
            DrafterAccount::kAllowance * total.time + (kExpectedLimits.most_lost + 1.0) * kToken);
  EXPECT_GT(total.lost, 0.49 * DrafterAccount::kAllowance * total.time)
      << "it is asked again now and then";
}

TEST(DrafterAccount, ATextThatTheDrafterDoesNotKnowIsReadWhenTheRestOfItPaysForThat) {
  DrafterAccount account;
  account.note_reading(1000, 1000 * 0.05 * kToken, target());
  EXPECT_DOUBLE_EQ(account.reading_ms(200, target()), 10.0 * kToken);
  EXPECT_TRUE(account.may_read(unread(200, 100), target())) << "it is expected to gain";
  EXPECT_FALSE(account.may_read(unread(200, 100, 0.0), target())) << "it is not";
  for (int i = 0; i < 100; ++i) gain(account, 0.2 * kToken, 0.2 * kToken, 2);  // 0.1 a token
  EXPECT_TRUE(account.may_read(unread(200, 150), target()));
  EXPECT_FALSE(account.may_read(unread(200, 50), target())) << "too little is left of the text";
  for (int i = 0; i < 300; ++i) gain(account, -0.1 * kToken, -0.1 * kToken, 1);
  EXPECT_FALSE(account.may_read(unread(20, 1000), target())) << "one that loses reads nothing";
}

// What a guess gains alone it does not gain where sixteen requests fill the step.
TEST(DrafterAccount, GainsOfOneLoadAreNotExpectedOfAnother) {
  DrafterAccount account;
  account.note_reading(1000, 1000 * 0.05 * kToken, target());
  for (int i = 0; i < 100; ++i) gain(account, 0.8 * kToken, 0.8 * kToken, 2);
  UnreadText text = unread(40, 48, 0.0);
  EXPECT_TRUE(account.may_read(text, target()));
  text.n_ready = 16;
  text.worth_ms = 0.23 * kToken;
  EXPECT_FALSE(account.may_read(text, target()));
  for (int i = 0; i < 100; ++i) gain(account, 0.8 * kToken, 0.8 * kToken, 2, /*n_ready=*/20);
  EXPECT_TRUE(account.may_read(text, target())) << "it was seen to gain there as well";
}

// What the likeliest tokens taught is not expected of drawn ones, and is kept from run to run.
TEST(DrafterAccount, GainsOfTheLikeliestTokensAreNotExpectedOfDrawnOnes) {
  DrafterAccount account;
  account.note_reading(1000, 1000 * 0.05 * kToken, target());
  const DrafterGain likeliest{.expected_ms = 0.8 * kToken,
                              .measured_ms = 0.8 * kToken,
                              .tokens = 2,
                              .worth_ms = kToken,
                              .token_ms = kToken};
  DrafterGain drawn = likeliest;
  drawn.drawn = true;
  drawn.expected_ms = drawn.measured_ms = 0.1 * kToken;
  for (int i = 0; i < 100; ++i) {
    account.note_gain(likeliest);
    account.note_gain(drawn);
  }
  DrafterExperience experience;
  account.tell(&experience);
  DrafterAccount next_run;
  next_run.recall(experience);
  for (const DrafterAccount* one : {&account, &next_run}) {
    UnreadText text = unread(200, 48, 0.3);
    EXPECT_TRUE(one->may_read(text, target()));
    text.drawn = true;
    EXPECT_FALSE(one->may_read(text, target()));
    text.tokens = 20;
    EXPECT_TRUE(one->may_read(text, target())) << "what they gained pays for little";
  }
  experience.gained.resize(10);  // written when there was no such difference
  next_run.recall(experience);
  EXPECT_TRUE(next_run.may_read(unread(200, 48, 0.3), target()));
}

TEST(DrafterAccount, WhileNothingWasGainedReadingIsBoundedByTheTime) {
  DrafterAccount account;
  account.expect_passes(1.0);
  EXPECT_FALSE(account.begin_reading(unread(40, 16, 0.05), target()));
  EXPECT_TRUE(account.begin_reading(unread(40, 512, 0.05), target())) << "8 of 512";
  EXPECT_FALSE(account.begin_reading(unread(40, 512, 0.05), target())) << "not a second time";
  account.note_step(500.0 * kToken);
  EXPECT_TRUE(account.begin_reading(unread(40, 512, 0.05), target())) << "16 of 1012";
  for (int i = 0; i < 10; ++i) gain(account, kToken, kToken, 2);
  EXPECT_TRUE(account.begin_reading(unread(4000, 16), target())) << "it was seen to gain";
}

TEST(DrafterAccount, ExplorationWaitsUntilEnoughTimeHasPassed) {
  DrafterAccount account;
  account.expect_passes(1.0);
  EXPECT_FALSE(account.begin_exploration(0, target()));
  account.note_step(45.0 * kToken);
  EXPECT_FALSE(account.begin_exploration(0, target()));
  account.note_step(10.0 * kToken);
  const std::optional<double> expected = account.begin_exploration(0, target());
  ASSERT_TRUE(expected);
  EXPECT_DOUBLE_EQ(*expected, kToken);
  account.note_pass(/*first=*/true, 1, 1.3 * kToken, target());
  account.end_exploration(*expected, 1.3 * kToken);
  EXPECT_FALSE(account.begin_exploration(0, target())) << "what it took is counted";
}

TEST(DrafterAccount, WhatCountsTenTimesIsExploredForATenthOfTheAllowance) {
  for (const double times : {1.0, 10.0}) {
    DrafterAccount account;
    account.expect_passes(0.3);
    double spent = 0.0;  // in times of a single token
    for (int step = 0; step < 20000; ++step) {
      account.note_step(kToken);
      const std::optional<double> expected = account.begin_exploration(0, target(), times);
      if (!expected) continue;
      EXPECT_DOUBLE_EQ(*expected, times * 0.3 * kToken);
      account.end_exploration(*expected, times * 0.3 * kToken);
      spent += 0.3;
    }
    EXPECT_NEAR(times * spent, DrafterAccount::kAllowance * 20000.0, 6.0) << times;
  }
}

// Not let into a long text for what another run lost, it could never show that it has become
// better.
TEST(DrafterAccount, ALossOfAnotherRunIsForgottenWhereNoneConfirmsIt) {
  DrafterExperience kept{
      .first_passes = {{.width = 1, .ms = 5.6}}, .reading_ms = 0.73, .gained = {-1.4 * 60.0, 60.0}};
  const UnreadText text = unread(300, 256);
  DrafterAccount fresh;
  fresh.note_pass(true, 1, 5.6, target());
  ASSERT_TRUE(fresh.may_read(text, target()));
  int runs = 0;
  for (bool may_read = false; !may_read && runs < 20; ++runs) {
    DrafterAccount account;
    account.recall(kept);
    may_read = account.may_read(text, target());
    EXPECT_TRUE(runs > 0 || !may_read) << "it is not forgotten at once";
    kept = DrafterExperience();
    account.tell(&kept);
  }
  EXPECT_LE(runs, 4);
  EXPECT_NEAR(kept.reading_ms, 0.73, 1e-9);
}

TEST(DrafterAccount, ReadingThatWasHeldUpOnceDoesNotKeepItFromReading) {
  for (const bool first : {true, false}) {
    DrafterAccount account;
    account.note_pass(true, 1, 0.1 * kToken, target());
    if (!first) account.note_reading(300, 300 * 0.02 * kToken, target());
    account.note_reading(300, 60000.0, target());
    EXPECT_TRUE(account.may_read(unread(300, 256), target())) << first;
    DrafterExperience known;
    account.tell(&known);
    DrafterAccount next_run;
    next_run.recall(known);
    EXPECT_TRUE(next_run.may_read(unread(300, 256), target())) << first;
    for (int i = 0; i < 6; ++i) next_run.note_reading(300, 300 * 0.02 * kToken, target());
    EXPECT_LT(next_run.reading_ms(300, target()), 300 * 0.03 * kToken) << first;
  }
}

TEST(DrafterAccount, OneStepsLossHoweverGreatIsForgottenBehindHundredsOfTokens) {
  DrafterAccount account = aged();
  for (int i = 0; i < 100; ++i) gain(account, 0.5 * kToken, 0.5 * kToken, 2);
  gain(account, -60000.0, -60000.0, 2);
  EXPECT_TRUE(account.suspended());
  EXPECT_TRUE(account.may_read(unread(300, 256), target())) << "it is still expected to gain";
  account.note_step(1210.0 * kToken);
  EXPECT_FALSE(account.suspended());
}

TEST(DrafterAccount, ReadingThatTookMoreThanExpectedIsInvestedOnceReadingWasSeen) {
  DrafterAccount account = aged();
  account.note_pass(true, 1, 0.1 * kToken, target());
  account.note_reading(100, 100 * 0.04 * kToken, target());
  EXPECT_EQ(account.invested_ms(), 0.0) << "what was expected was a guess";
  account.note_reading(100, 100 * 0.06 * kToken, target());
  EXPECT_NEAR(account.invested_ms(), 100 * 0.02 * kToken, 1e-9);
}

// Guesses may lose 2 single tokens' time behind 100 of them, less what reading took.
TEST(DrafterAccount, WhatIsInvestedInReadingMayNotBeLostOnceMore) {
  for (const bool reads : {true, false}) {
    DrafterAccount account;
    account.note_step(100.0 * kToken);
    account.note_reading(1000, 1000 * 0.05 * kToken, target());
    if (reads) {
      ASSERT_TRUE(account.begin_reading(unread(20, 512), target()));
    }
    gain(account, -0.6 * kToken, 0.0, 1);
    EXPECT_FALSE(account.suspended()) << reads;
    gain(account, -0.6 * kToken, 0.0, 1);
    EXPECT_EQ(account.suspended(), reads) << reads;
  }
}

TEST(DrafterAccount, ReadingThatWasBegunInVainIsGivenBack) {
  DrafterAccount account = aged();
  account.note_pass(true, 1, 0.1 * kToken, target());
  ASSERT_TRUE(account.begin_reading(unread(40, 512), target()));
  EXPECT_GT(account.invested_ms(), 0.0);
  account.give_back_reading(40, target());
  EXPECT_EQ(account.invested_ms(), 0.0);
}

}  // namespace
}  // namespace outrider
