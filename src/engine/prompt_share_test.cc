#include "engine/prompt_share.h"

#include <gtest/gtest.h>

#include <cmath>

namespace outrider {
namespace {

// What prompts took of all time when a step of `texts` takes `step_ms` and a token more `token_ms`.
struct Played {
  double all_ms = 0.0;
  double share = 0.0;    // of it, for prompts
  double most_ms = 0.0;  // that one step took for prompts
};

Played play(PromptShare& share, std::int64_t texts, std::int64_t prompts, double step_ms,
            double token_ms, int steps) {
  double all = 0.0;
  double taken = 0.0;
  Played played;
  for (int i = 0; i < steps; ++i) {
    const std::int64_t n = share.tokens(texts, prompts);
    const double prompt_ms = static_cast<double>(n) * token_ms;
    share.note(step_ms + prompt_ms, prompt_ms, n);
    all += step_ms + prompt_ms;
    taken += prompt_ms;
    played.most_ms = std::max(played.most_ms, prompt_ms);
  }
  played.all_ms = all;
  played.share = taken / all;
  return played;
}

TEST(PromptShare, InTheLongRunOnePromptTakesItsShareOnEveryMachine) {
  for (const double step_ms : {0.5, 20.0, 95.0, 700.0}) {
    for (const double token_ms : {0.001, 0.3, 13.0, 60.0, 400.0}) {
      PromptShare share(128, 0.2);
      play(share, 4, 1, step_ms, token_ms, 20'000);  // the first kBurstMs
      // Long: at 0.5 ms a step, 25,600 lie between two pieces of eight of the dearest tokens.
      const Played played = play(share, 4, 1, step_ms, token_ms, 400'000);
      const double at_once = PromptShare::kBurstMs + played.most_ms;
      EXPECT_LE(played.share, 0.2 + at_once / played.all_ms) << step_ms << ", " << token_ms;
      // Where 128 tokens are less than the share, no more can be read in a step.
      const bool limited = 128 * token_ms < 0.25 * step_ms;
      EXPECT_GE(played.share, limited ? 0.0 : 0.19) << step_ms << ", " << token_ms;
    }
  }
}

TEST(PromptShare, ALongPromptCostsNoMoreThanItsShareOfTheTimeThatItTakes) {
  for (const double token_ms : {0.3, 6.0, 13.0}) {
    PromptShare share(128, 0.2);
    Played played = play(share, 3, 1, 54.0, token_ms, 1);
    double all_ms = played.all_ms;
    double taken_ms = played.share * played.all_ms;
    while (all_ms < 60'000.0) {
      played = play(share, 3, 1, 54.0, token_ms, 1);
      all_ms += played.all_ms;
      taken_ms += played.share * played.all_ms;
      // Ten seconds are what half of the share takes to pay kBurstMs back.
      if (all_ms > 10'000.0) {
        EXPECT_LE(taken_ms, 0.2 * all_ms + played.most_ms + 0.01 * all_ms) << token_ms;
      }
    }
    EXPECT_GE(taken_ms / all_ms, 0.19) << token_ms;
  }
}

TEST(PromptShare, AShortPromptIsReadAtOnceAndNoStepTakesMoreThanTheBurst) {
  PromptShare share(128, 0.2);
  play(share, 1, 1, 54.0, 13.0, 2);  // learns what a token takes
  for (int i = 0; i < 200; ++i) share.note(54.0, 0.0, 0);
  EXPECT_GE(share.tokens(1, 1), 50);
  PromptShare long_one(1024, 0.2);
  EXPECT_LE(play(long_one, 1, 1, 54.0, 13.0, 1000).most_ms, PromptShare::kBurstMs);
}

TEST(PromptShare, PromptsThatWaitTogetherGetMoreOfTheTime) {
  const auto share_of = [](std::int64_t texts, std::int64_t prompts) {
    PromptShare share(128, 0.2);
    play(share, texts, prompts, 54.0, 13.0, 2000);
    return play(share, texts, prompts, 54.0, 13.0, 2000).share;
  };
  EXPECT_NEAR(share_of(1, 16), 15.0 / 16.0, 0.03);
  EXPECT_NEAR(share_of(4, 5), 0.5, 0.02);
  EXPECT_NEAR(share_of(15, 2), 0.2, 0.02);
}

TEST(PromptShare, AShareOfOneIsNoLimit) {
  PromptShare share(128, 1.0);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(share.tokens(1, 1), 128);
    share.note(2000.0, 1900.0, 128);
  }
}

TEST(PromptShare, WhatIsDearerThanTheWholeBucketIsReadInTheEnd) {
  PromptShare share(128, 0.2);
  const Played played = play(share, 1, 1, 700.0, 400.0, 2000);  // a piece takes 3.2 s
  EXPECT_GT(played.share, 0.15);
  EXPECT_EQ(played.most_ms, 8 * 400.0);
}

// Steps of 50 ms without prompts until one may be read.
int steps_until_a_piece(PromptShare& share) {
  for (int steps = 0; steps < 10'000; ++steps) {
    if (share.tokens(1, 1) > 0) return steps;
    share.note(50.0, 0.0, 0);
  }
  return 10'000;
}

// A minute's pause was paid back with four of waiting.
TEST(PromptShare, APassThatWasHeldUpKeepsNoPromptWaiting) {
  for (const bool known : {false, true}) {
    for (const double pause_ms : {5'000.0, 60'000.0, 3'600'000.0}) {
      PromptShare share(128, 0.2);
      if (known) play(share, 1, 1, 50.0, 13.0, 100);
      share.tokens(1, 1);
      share.note(pause_ms, pause_ms - 50.0, 8);
      EXPECT_LE(50.0 * steps_until_a_piece(share), 10'500.0) << known << ", " << pause_ms;
      // What it said of a token's time fades with the pieces behind it.
      const Played played = play(share, 1, 1, 50.0, 13.0, 2'000);
      EXPECT_GT(played.share, 0.15) << known << ", " << pause_ms;
    }
  }
}

// The negative control: what takes as long again and again is slow, and is charged.
TEST(PromptShare, WhatBecomesSlowForGoodCountsInFull) {
  PromptShare share(128, 0.2);
  play(share, 1, 1, 50.0, 13.0, 2'000);
  play(share, 1, 1, 50.0, 400.0, 1'000);
  EXPECT_LT(play(share, 1, 1, 50.0, 400.0, 4'000).share, 0.21);
}

// What `readers` texts wait for takes of all time beside `texts` others.
double share_of_reading(PromptShare& share, std::int64_t texts, std::int64_t readers) {
  double read_ms = 0.0;
  double all_ms = 0.0;
  while (all_ms < 100'000.0) {
    const double now_ms = share.reading_ms(texts, readers);
    share.note(50.0 + now_ms, 0.0, 0, now_ms);
    read_ms += now_ms;
    all_ms += 50.0 + now_ms;
  }
  return read_ms / all_ms;
}

TEST(PromptShare, WhatDraftersReadTakesTheSameShare) {
  PromptShare share(128, 0.2);
  EXPECT_EQ(share.reading_ms(3, 1), PromptShare::kReadMs) << "a short text is read at once";
  EXPECT_EQ(share.reading_takes_ms(100.0), 100.0);
  EXPECT_EQ(share.reading_takes_ms(PromptShare::kReadMs + 200.0), 1000.0);
  EXPECT_NEAR(share_of_reading(share, 3, 1), 0.2, 0.01);
  EXPECT_NEAR(share_of_reading(share, 1, 3), 2.0 / 3.0, 0.01) << "three wait, and one text goes on";
}

TEST(PromptShare, WhatDraftersReadIsNotLimitedWhereNobodyElseIsHeldUp) {
  EXPECT_TRUE(std::isinf(PromptShare(128, 0.2).reading_ms(0, 2)));
  EXPECT_TRUE(std::isinf(PromptShare(128, 1.0).reading_ms(3, 1)));
}

TEST(PromptShare, PromptsPayForWhatDraftersReadBeforeThem) {
  PromptShare share(128, 0.2);
  play(share, 3, 1, 50.0, 6.0, 1);  // a token's time
  const auto steps_to_wait = [&share](double read_ms) {
    PromptShare copy = share;
    copy.note(50.0 + read_ms, 0.0, 0, read_ms);
    int steps = 0;
    while (copy.tokens(3, 1) == 0 && steps < 10'000) {
      copy.note(50.0, 0.0, 0);
      ++steps;
    }
    return steps;
  };
  EXPECT_EQ(steps_to_wait(0.0), 0);
  EXPECT_GT(steps_to_wait(3'000.0), 100);
}

TEST(PromptShare, PromptsKeepHalfOfTheirShareWhileDraftersRead) {
  PromptShare share(128, 0.2);
  double prompt_ms = 0.0;
  double all_ms = 0.0;
  while (all_ms < 100'000.0) {
    const std::int64_t n = share.tokens(3, 1);
    const double now_ms = 6.0 * static_cast<double>(n);
    const double read_ms = share.reading_ms(3, 1);
    share.note(50.0 + now_ms + read_ms, now_ms, n, read_ms);
    prompt_ms += now_ms;
    all_ms += 50.0 + now_ms + read_ms;
  }
  EXPECT_GT(prompt_ms, 0.09 * all_ms);
  EXPECT_LT(prompt_ms, 0.21 * all_ms + PromptShare::kBurstMs);
}

}  // namespace
}  // namespace outrider
