#include "engine/prompt_division.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/random.h"
#include "testing/chi_square.h"

namespace outrider {
namespace {

using Unread = PromptDivision::Unread;
using Parts = std::vector<std::int64_t>;

Unread unread(std::int64_t missing, Pos seen = 0) {
  return {.seen = seen, .missing = missing, .wanted = missing};
}

TEST(PromptDivision, APromptAloneGetsAll) {
  PromptDivision division;
  const Unread one[] = {unread(30'000)};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(division.divide(one, 512, 512), (Parts{512}));
  const Unread rest[] = {unread(100, 29'900)};
  EXPECT_EQ(division.divide(rest, 512, 512), (Parts{100}));
  EXPECT_EQ(division.divide({}, 512, 512), Parts{});
}

TEST(PromptDivision, AShortPromptIsNotHeldUpByALongOneBeforeIt) {
  PromptDivision division;
  const Unread prompts[] = {unread(30'000), unread(600), unread(50)};
  EXPECT_EQ(division.divide(prompts, 512, 512), (Parts{262, 200, 50}))
      << "the shortest first, and half for the oldest with what theirs is short of a piece";
}

TEST(PromptDivision, PromptsThatWouldBothBeLateAreReadOldestFirst) {
  PromptDivision division;
  const Unread prompts[] = {unread(30'000), unread(20'000)};
  EXPECT_EQ(division.divide(prompts, 512, 512), (Parts{512, 0}));
  const Unread nearly[] = {unread(90, 29'910), unread(50)};
  EXPECT_EQ(division.divide(nearly, 100, 512), (Parts{90, 10}));
}

TEST(PromptDivision, WhatTheOldestLeavesGoesToTheShortest) {
  PromptDivision division;
  const Unread prompts[] = {unread(100), unread(400), unread(300)};
  EXPECT_EQ(division.divide(prompts, 512, 512), (Parts{100, 112, 300}));
}

TEST(PromptDivision, CutsAreAtTheGridWhereTheyCanBe) {
  PromptDivision division;
  const Unread prompts[] = {unread(3'000, 462), unread(2'000)};
  EXPECT_EQ(division.divide(prompts, 512, 512), (Parts{50, 462}));
}

// Half of eight tokens is less than a piece: each gets a whole one in turn.
TEST(PromptDivision, SmallAllowancesAreNotCutBelowAPiece) {
  PromptDivision division;
  const Unread prompts[] = {unread(3'000), unread(100)};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(division.divide(prompts, 8, 8), (Parts{8, 0}));
    EXPECT_EQ(division.divide(prompts, 8, 8), (Parts{0, 8}));
  }
  PromptDivision of_one;
  EXPECT_EQ(of_one.divide(prompts, 1, 1), (Parts{1, 0}));
  EXPECT_EQ(of_one.divide(prompts, 1, 1), (Parts{0, 1}));
  EXPECT_EQ(of_one.divide(prompts, 0, 1), (Parts{0, 0}));
}

TEST(PromptDivision, APromptWhoseBeginningIsWaitedForIsAsShortAsThat) {
  PromptDivision division;
  Unread prompts[] = {unread(30'000), unread(20'000)};
  prompts[1].wanted = 150;
  EXPECT_EQ(division.divide(prompts, 512, 512), (Parts{362, 150}));
}

// Whatever comes and whenever: nobody gets what it does not miss, and the oldest has half of what
// was given out, less a piece; with a grid, which cuts it shorter when it is alone again, a third.
TEST(PromptDivision, TheOldestIsReadWhateverComes) {
  const std::uint64_t seed = testing::test_seed(7);
  for (std::uint64_t round = 0; round < 200; ++round) {
    PromptDivision division;
    const std::int64_t grid = round % 2 == 0 ? 1 : 8;
    std::vector<Unread> prompts = {unread(2'000)};
    std::int64_t given = 0;
    std::int64_t of_oldest = 0;
    for (std::uint32_t step = 0;; ++step) {
      ASSERT_LT(step, 5'000U) << "the oldest is not read";
      const NoiseKey key = noise_key(seed + round, step);
      if (noise_bits(key, 0) % 2 == 0) prompts.push_back(unread(1 + noise_bits(key, 1) % 60));
      const std::int64_t allowance = noise_bits(key, 2) % (round % 3 == 0 ? 12U : 64U);
      const Parts parts = division.divide(prompts, allowance, grid);
      ASSERT_EQ(parts.size(), prompts.size());
      for (std::size_t i = 0; i < parts.size(); ++i) {
        ASSERT_GE(parts[i], 0);
        ASSERT_LE(parts[i], prompts[i].missing);
        prompts[i] =
            unread(prompts[i].missing - parts[i], prompts[i].seen + static_cast<Pos>(parts[i]));
      }
      const std::int64_t sum = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
      ASSERT_LE(sum, allowance);
      given += sum;
      of_oldest += parts[0];
      if (prompts[0].missing == 0) break;
      ASSERT_GE((grid == 1 ? 2 : 3) * (of_oldest + grid), given);
      std::erase_if(prompts, [](const Unread& p) { return p.missing == 0; });
    }
  }
}

}  // namespace
}  // namespace outrider
