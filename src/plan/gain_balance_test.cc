#include "plan/gain_balance.h"

#include <gtest/gtest.h>

#include "testing/drafter_figures.h"

namespace outrider {
namespace {

using testing::kToken;

constexpr double kMuch = 1000.0;     // may be lost, in times of a single token: the limits hold
constexpr double kAllowance = 0.01;  // of all time

constexpr BalanceLimits kAllLimits[] = {kExpectedLimits, kMeasuredLimits};

// All in times of a single token.
void gain(GainBalance& balance, double tokens, double may_be_lost = kMuch) {
  balance.note_gain(tokens * kToken, may_be_lost * kToken, kToken);
}

TEST(GainBalance, ADrafterThatLosesIsSuspendedUntilTheAllowanceHasPaidForIt) {
  for (const BalanceLimits& limits : kAllLimits) {
    GainBalance balance(limits);
    gain(balance, -limits.most_lost);
    EXPECT_FALSE(balance.suspended()) << "so much may be lost";
    balance.note_gain(-1.0, kMuch * kToken, kToken);
    EXPECT_TRUE(balance.suspended());
    const double lost = (limits.most_lost + limits.ends_at) * kToken + 1.0;
    balance.add_allowance(lost - 0.1);
    EXPECT_TRUE(balance.suspended());
    balance.add_allowance(0.2);
    EXPECT_FALSE(balance.suspended());
  }
}

TEST(GainBalance, LittleMayBeLostWhileTheCallerSaysSoButNotLessThanTheLeast) {
  for (const BalanceLimits& limits : kAllLimits) {
    for (const double may_be_lost : {-10.0, 0.0, 5.0}) {
      const double most = may_be_lost > 0.0 ? may_be_lost : limits.least_lost;
      if (most > limits.most_lost) continue;
      GainBalance balance(limits);
      gain(balance, -most + 0.01, may_be_lost);
      EXPECT_FALSE(balance.suspended()) << may_be_lost;
      gain(balance, -0.02, may_be_lost);
      EXPECT_TRUE(balance.suspended()) << may_be_lost;
    }
  }
}

TEST(GainBalance, ABoundOfLossesIsWhereSuspensionsBeginAndEnd) {
  GainBalance balance(kMeasuredLimits);
  balance.bound_losses(2.0);
  gain(balance, -1.99);
  EXPECT_FALSE(balance.suspended());
  gain(balance, -0.02);
  EXPECT_TRUE(balance.suspended());
  balance.add_allowance(0.005 * kToken);
  EXPECT_TRUE(balance.suspended());
  balance.add_allowance(0.01 * kToken);
  EXPECT_FALSE(balance.suspended());

  GainBalance narrow(kExpectedLimits);
  narrow.bound_losses(2.0 * kExpectedLimits.most_lost);
  gain(narrow, -kExpectedLimits.most_lost - 0.01);
  EXPECT_TRUE(narrow.suspended()) << "it widens no limits";
}

TEST(GainBalance, TheAllowanceRaisesNoBalanceThatIsNotSuspended) {
  GainBalance balance(kExpectedLimits);
  gain(balance, -1.9);
  balance.add_allowance(100.0 * kToken);
  gain(balance, -0.2);
  EXPECT_TRUE(balance.suspended());
}

TEST(GainBalance, AGreatGainEndsTheSuspensionWithItsStep) {
  for (const BalanceLimits& limits : kAllLimits) {
    GainBalance balance(limits);
    gain(balance, -limits.most_lost - 1.0);
    ASSERT_TRUE(balance.suspended());
    gain(balance, limits.most_lost + 1.5);
    EXPECT_TRUE(balance.suspended()) << "the step has not ended";
    balance.add_allowance(kAllowance * kToken);
    EXPECT_FALSE(balance.suspended());
  }
}

TEST(GainBalance, AGoodPastPaysForNoMoreThanItsBound) {
  for (const BalanceLimits& limits : kAllLimits) {
    GainBalance balance(limits);
    for (int i = 0; i < 1000; ++i) gain(balance, 1.0);
    double lost = 0.0;
    while (!balance.suspended()) {
      gain(balance, -0.5);
      lost += 0.5;
    }
    EXPECT_LE(lost, limits.most_lost + limits.most_gained + 0.5);
    EXPECT_GE(lost, limits.most_lost);
  }
}

TEST(GainBalance, OneLossHoweverGreatSuspendsForHundredsOfTokensAtMost) {
  for (const BalanceLimits& limits : kAllLimits) {
    GainBalance balance(limits);
    gain(balance, -100000.0);
    const double rise = (2.0 * limits.most_lost + limits.ends_at) * kToken;
    balance.add_allowance(rise - 0.1);
    EXPECT_TRUE(balance.suspended());
    balance.add_allowance(0.2);
    EXPECT_FALSE(balance.suspended());
    EXPECT_LE(rise, kAllowance * 1000.0 * kToken);
  }
}

// A drafter that loses in each step in which it is asked, for ever.
TEST(GainBalance, WhatIsLostInAllIsBoundedByTheAllowance) {
  for (const BalanceLimits& limits : kAllLimits) {
    GainBalance balance(limits);
    double lost = 0.0;
    double time = 0.0;
    for (int step = 0; step < 100000; ++step) {
      double tokens = 1.0;
      if (!balance.suspended()) {
        gain(balance, -0.4);
        lost += 0.4;
        tokens += 0.4;
      }
      balance.add_allowance(kAllowance * tokens * kToken);
      time += tokens;
    }
    EXPECT_LE(lost, kAllowance * time + limits.most_lost + 1.0);
    EXPECT_GT(lost, 0.49 * kAllowance * time) << "it is asked again now and then";
  }
}

}  // namespace
}  // namespace outrider
