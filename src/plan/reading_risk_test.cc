#include "plan/reading_risk.h"

#include <gtest/gtest.h>

#include "testing/drafter_figures.h"

namespace outrider {
namespace {

using testing::kToken;
using testing::unread;

// Gains of a drafter that was seen to gain half of each token's plain time, where texts are not
// drawn.
GainShares proven_gains() {
  GainShares gains;
  for (int i = 0; i < 10; ++i) {
    gains.note_gain({.expected_ms = kToken, .tokens = 2, .worth_ms = kToken, .token_ms = kToken});
  }
  return gains;
}

// `reading` and `elapsed` in times of a single token.
bool begin(ReadingRisk& risk, const UnreadText& text, double reading, double elapsed = 0.0,
           const GainShares& gains = {}) {
  return risk.begin(text, reading * kToken, gains, kToken, elapsed * kToken);
}

TEST(ReadingRisk, ReadingPaysWhereWhatIsToComeBringsMoreByAMargin) {
  const GainShares nothing_seen;
  const UnreadText text = unread(200, 100);  // of which 30 tokens' time is expected to be gained
  EXPECT_TRUE(ReadingRisk::pays(text, 23.0 * kToken, nothing_seen));
  EXPECT_FALSE(ReadingRisk::pays(text, 23.1 * kToken, nothing_seen)) << "30 / 1.3 is 23.08";
  EXPECT_FALSE(ReadingRisk::pays(unread(200, 50), 23.0 * kToken, nothing_seen))
      << "too little is left of the text";
  EXPECT_FALSE(ReadingRisk::pays(unread(200, 100, 0.0), 1.0, nothing_seen)) << "it gains nothing";
  EXPECT_TRUE(ReadingRisk::pays(text, 30.0 * kToken, proven_gains())) << "more was seen";
}

TEST(ReadingRisk, AllRequestsThatShareAStepGainAndEachPaysForItsOwn) {
  UnreadText text = unread(40, 100);
  text.worth_ms = 0.2 * kToken;
  EXPECT_FALSE(ReadingRisk::pays(text, 8.0 * kToken, {}));
  // What may be risked is a share of all requests' time.
  ReadingRisk risk;
  EXPECT_FALSE(begin(risk, text, 3.0));
  text.n_ready = 16;
  EXPECT_TRUE(begin(risk, text, 3.0));
}

// A process's first answers, of sixteen tokens, would take twice as long for finding out that a
// draft as costly as the target is no help.
TEST(ReadingRisk, WhileNothingWasGainedReadingIsBoundedByTheTime) {
  ReadingRisk risk;
  EXPECT_FALSE(begin(risk, unread(40, 16, 0.05), 8.0));
  EXPECT_EQ(risk.invested_ms(), 0.0);
  ReadingRisk cheap;
  EXPECT_TRUE(begin(cheap, unread(40, 16, 0.05), 1.2)) << "little may always be risked";
  EXPECT_TRUE(begin(risk, unread(40, 512, 0.05), 8.0)) << "8 of 512";
  EXPECT_FALSE(begin(risk, unread(40, 512, 0.05), 8.0)) << "not a second time";
  EXPECT_TRUE(begin(risk, unread(40, 512, 0.05), 8.0, 500.0)) << "16 of 1012";
  EXPECT_DOUBLE_EQ(risk.invested_ms(), 16.0 * kToken);
  UnreadText text = unread(4000, 16);
  text.drawn = true;
  EXPECT_FALSE(begin(risk, text, 800.0, 500.0, proven_gains())) << "not proven for drawn texts";
  EXPECT_TRUE(begin(risk, unread(4000, 16), 800.0, 500.0, proven_gains()))
      << "one that has gained is asked whenever that is expected to pay";
}

TEST(ReadingRisk, WhatIsExpectedToBringManyTimesItsCostMayRiskMore) {
  // 0.02 of 500 tokens are 10. Of the same text 0.05 are 25, 2.5 times as much; 0.5 are 250.
  for (const double share : {0.05, 0.5}) {
    ReadingRisk risk;
    EXPECT_TRUE(begin(risk, unread(100, 500, share), 9.9)) << share;
    ReadingRisk more;
    EXPECT_EQ(begin(more, unread(100, 500, share), 20.0), share > 0.1) << share;
    ReadingRisk most;
    EXPECT_FALSE(begin(most, unread(100, 500, share), 30.1)) << "three times as much at most";
  }
  ReadingRisk risk;
  EXPECT_FALSE(begin(risk, unread(1000, 500, 0.9), 100.1, 1e6)) << "100 tokens at once";
}

TEST(ReadingRisk, WhatIsInvestedComesBackByGains) {
  ReadingRisk risk;
  ASSERT_TRUE(begin(risk, unread(40, 512), 8.0));
  risk.note_gain(3.0 * kToken);
  EXPECT_DOUBLE_EQ(risk.invested_ms(), 5.0 * kToken);
  risk.note_gain(-1.0 * kToken);
  EXPECT_DOUBLE_EQ(risk.invested_ms(), 6.0 * kToken) << "a loss has to come back as well";
  risk.correct(1.0 * kToken);
  EXPECT_DOUBLE_EQ(risk.invested_ms(), 7.0 * kToken) << "reading took more than was expected";
  risk.note_gain(100.0 * kToken);
  EXPECT_EQ(risk.invested_ms(), 0.0) << "gains are not saved up";
}

TEST(ReadingRisk, WhatWasNotReadIsGivenBack) {
  ReadingRisk risk;
  ASSERT_TRUE(begin(risk, unread(40, 512), 4.0));
  EXPECT_GT(risk.invested_ms(), 0.0);
  risk.give_back(4.0 * kToken);
  EXPECT_EQ(risk.invested_ms(), 0.0);
  risk.give_back(1.0);
  EXPECT_EQ(risk.invested_ms(), 0.0);
}

}  // namespace
}  // namespace outrider
