#include "draft/model/draft_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "dist/gumbel.h"
#include "testing/chi_square.h"

namespace outrider {
namespace {

const std::vector<float> kRow = {0.0f, 2.0f, 1.0f, -1.0f, 1.5f};

std::vector<Token> chosen(const DraftShape& shape, std::int32_t max_children, bool draws,
                          std::uint64_t seed = 1) {
  const Distribution q{.logits = kRow};
  return choose_draft(kRow, q,
                      {.shape = shape, .max_children = max_children, .seed = seed, .draws = draws})
      .tokens;
}

TEST(DraftChoice, CoupledChildrenAreTheFirstTokensInTheTargetsPerturbedOrder) {
  DraftShape shape{.branches = 4, .split_p = 0.0f};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<PerturbedChoice> want =
        perturbed_top_reference({.logits = kRow}, noise_key(seed, 8), 3);
    const Distribution q{.logits = kRow};
    const DraftChoice got = choose_draft(
        kRow, q, {.shape = shape, .max_children = 3, .seed = seed, .root_position = 5, .depth = 2});
    ASSERT_EQ(got.tokens.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(got.tokens[i], want[i].token);
    EXPECT_TRUE(got.draw.tokens.empty());
  }
}

TEST(DraftChoice, SharpnessScalesWhatTheNoiseIsAddedTo) {
  const DraftShape shape{.branches = 2, .split_p = 0.0f};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const float sharpness : {0.5f, 1.0f, 1.7f}) {
      const Distribution q{.logits = kRow, .scale = 0.8f};
      const NoiseKey key = noise_key(seed, 8);
      const std::vector<PerturbedChoice> want =
          perturbed_top_reference({.logits = kRow, .scale = 0.8f * sharpness}, key, 3);
      ChoiceContext context{.shape = shape,
                            .max_children = 2,
                            .seed = seed,
                            .root_position = 5,
                            .depth = 2,
                            .wants_confidence = true,
                            .sharpness = sharpness};
      const DraftChoice got = choose_draft(kRow, q, context);
      ASSERT_EQ(got.tokens.size(), 2U);
      EXPECT_EQ(got.tokens[0], want[0].token);
      EXPECT_EQ(got.tokens[1], want[1].token);
      // The rivals' leads, in log p as the model says it, and in noise.
      EXPECT_EQ(got.rivals.first, want[0].token);
      EXPECT_EQ(got.rivals.second, want[1].token);
      const auto logit = [](Token t) {
        return 0.8 * static_cast<double>(kRow[static_cast<std::size_t>(t)]);
      };
      EXPECT_NEAR(got.rivals.log_p_lead, logit(want[0].token) - logit(want[1].token), 1e-6);
      EXPECT_NEAR(static_cast<double>(sharpness) * got.rivals.log_p_lead + got.rivals.noise_lead,
                  want[0].score - want[1].score, 1e-6);
      // Where tokens are drawn, what they are drawn from stays what it is.
      context.draws = true;
      const DraftChoice drawn = choose_draft(kRow, q, context);
      context.sharpness = 1.0f;
      EXPECT_EQ(drawn.tokens, choose_draft(kRow, q, context).tokens);
      EXPECT_EQ(drawn.rivals.first, kNoToken);
    }
  }
}

TEST(DraftChoice, BranchesFollowTheLargestProbabilities) {
  const std::vector<double> p = probabilities({.logits = kRow});  // 0.45 0.27 0.17 0.06 0.02
  for (const bool draws : {false, true}) {
    EXPECT_EQ(chosen({.split_p = 0.1f}, 5, draws).size(), 3U);
    EXPECT_EQ(chosen({.split_p = 0.2f}, 5, draws).size(), 2U);
    EXPECT_EQ(chosen({.split_p = 0.5f}, 5, draws).size(), 1U);
    EXPECT_EQ(chosen({.split_p = 0.0f}, 5, draws).size(), 5U);
    EXPECT_EQ(chosen({.split_p = 0.0f}, 2, draws).size(), 2U);
    EXPECT_EQ(chosen({.split_p = static_cast<float>(p[2]) + 1e-6f}, 5, draws).size(), 2U);
  }
}

TEST(DraftChoice, UnsureNodesEndTheDraft) {
  for (const bool draws : {false, true}) {
    EXPECT_EQ(chosen({.p_min = 0.44f}, 1, draws).size(), 1U);
    EXPECT_EQ(chosen({.p_min = 0.47f}, 1, draws).size(), 0U);
    EXPECT_EQ(chosen({.p_ratio = 1.6f}, 1, draws).size(), 1U);
    EXPECT_EQ(chosen({.p_ratio = 1.7f}, 1, draws).size(), 0U);
  }
}

// The lead is over the best other token, under the noise that the target has there.
TEST(DraftChoice, HowSureItIsSaysByHowMuchATokenIsAhead) {
  const Distribution q{.logits = kRow};
  const DraftShape shape{.split_p = 0.0f};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<PerturbedChoice> all = perturbed_top(q, noise_key(seed, 1), 5);
    const DraftChoice c = choose_draft(
        kRow, q, {.shape = shape, .max_children = 3, .seed = seed, .wants_confidence = true});
    ASSERT_EQ(c.confidence.size(), c.tokens.size());
    for (std::size_t i = 0; i < c.tokens.size(); ++i) {
      const double lead = all[i].score - all[i == 0 ? 1 : 0].score;
      EXPECT_EQ(c.tokens[i], all[i].token);
      EXPECT_NEAR(c.confidence[i], 1.0 / (1.0 + std::exp(-lead)), 1e-6);
    }
  }
}

TEST(DraftChoice, TheOnlyPossibleTokenIsSure) {
  const float never = -std::numeric_limits<float>::infinity();
  const std::vector<float> row = {never, 1.0f, never};
  const DraftShape shape;
  const Distribution dense{.logits = row};
  EXPECT_EQ(choose_draft(row, dense, {.shape = shape, .wants_confidence = true}).confidence,
            std::vector<float>{1.0f});
  const Token only = 1;
  const float logit = 1.0f;
  const Distribution greedy{.logits = std::span(&logit, 1), .tokens = std::span(&only, 1)};
  EXPECT_EQ(choose_draft(row, greedy, {.shape = shape, .greedy = true, .wants_confidence = true})
                .confidence,
            std::vector<float>{1.0f});
}

TEST(DraftChoice, WhetherSomethingIsDraftedNeverDependsOnWhatIsDrawn) {
  const DraftShape shape{.branches = 3, .split_p = 0.2f, .p_min = 0.3f, .p_ratio = 1.2f};
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    ASSERT_EQ(chosen(shape, 3, true, seed).size(), 2U) << seed;
  }
}

TEST(DraftChoice, DrawsComeFromTheNotedDistributionWithoutReplacement) {
  const std::uint64_t seed = testing::test_seed(3);
  const Distribution q{.logits = kRow};
  const std::vector<double> p = probabilities(q);
  const DraftShape shape{.split_p = 0.0f};
  std::vector<std::int64_t> first(5, 0);
  std::vector<std::int64_t> pairs(25, 0);
  for (std::uint64_t i = 0; i < 200000; ++i) {
    const DraftChoice c = choose_draft(
        kRow, q,
        {.shape = shape, .max_children = 2, .seed = seed, .root_position = i, .draws = true});
    ASSERT_EQ(c.draw.tokens, c.tokens);
    ++first[static_cast<std::size_t>(c.tokens[0])];
    ++pairs[static_cast<std::size_t>(c.tokens[0] * 5 + c.tokens[1])];
    for (std::size_t t = 0; t < 5 && i == 0; ++t)
      ASSERT_NEAR(c.draw.p.at(static_cast<Token>(t)), p[t], 1e-12);
  }
  EXPECT_GT(testing::chi_square_p(first, p), testing::least_p());
  std::vector<double> expected(25, 0.0);
  for (std::size_t a = 0; a < 5; ++a) {
    for (std::size_t b = 0; b < 5; ++b) {
      if (a != b) expected[a * 5 + b] = p[a] * p[b] / (1.0 - p[a]);
    }
  }
  EXPECT_GT(testing::chi_square_p(pairs, expected), testing::least_p());
}

TEST(DraftChoice, DrawsAreIndependentOfTheTargetsNoise) {
  // With the same noise the draft would nearly always draw what the target takes.
  const Distribution q{.logits = kRow};
  std::vector<std::vector<std::int64_t>> table(5, std::vector<std::int64_t>(5, 0));
  const DraftShape shape;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const DraftChoice c =
        choose_draft(kRow, q, {.shape = shape, .seed = 9, .root_position = i, .draws = true});
    const Token target = perturbed_argmax(q, noise_key(9, i + 1));
    ++table[static_cast<std::size_t>(c.tokens[0])][static_cast<std::size_t>(target)];
  }
  EXPECT_GT(testing::chi_square_independence_p(table), testing::least_p());
}

TEST(DraftChoice, WhereTheChainIsGreedyTheRawRowGivesTheBranches) {
  const float logit = 2.0f;
  const Token only = 1;
  const Distribution greedy{.logits = {&logit, 1}, .tokens = {&only, 1}};
  for (const bool draws : {false, true}) {
    const DraftChoice c = choose_draft(
        kRow, greedy,
        {.shape = {.split_p = 0.15f}, .max_children = 4, .draws = draws, .greedy = true});
    EXPECT_EQ(c.tokens, (std::vector<Token>{1, 4, 2}));
    EXPECT_EQ(c.draw.tokens, draws ? std::vector<Token>{1} : std::vector<Token>{});
  }
  EXPECT_TRUE(
      choose_draft(kRow, greedy, {.shape = {.p_min = 0.5f}, .greedy = true}).tokens.empty());
  EXPECT_TRUE(choose_draft(kRow, Distribution{}, {.shape = {}}).tokens.empty());
}

// A grammar, a bias or penalties: the target's chain leaves the same one.
TEST(DraftChoice, WhatAGreedyChainRuledOutIsNoGuessAndNoRival) {
  const std::vector<float> row = {5.0f, 4.0f, 1.0f};
  const float logit = 4.0f;
  const Token only = 1;
  const Distribution greedy{.logits = {&logit, 1}, .tokens = {&only, 1}};
  const DraftShape all{.split_p = 0.0f};
  const DraftChoice c = choose_draft(
      row, greedy, {.shape = all, .max_children = 3, .greedy = true, .wants_confidence = true});
  EXPECT_EQ(c.tokens, (std::vector<Token>{1, 2}));
  ASSERT_EQ(c.confidence.size(), 2U);
  EXPECT_NEAR(c.confidence[0], 1.0 / (1.0 + std::exp(-3.0)), 1e-6);
  EXPECT_NEAR(c.confidence[1], 1.0 / (1.0 + std::exp(3.0)), 1e-6);
  // One child alone is as sure.
  const DraftChoice one = choose_draft(
      row, greedy, {.shape = all, .max_children = 1, .greedy = true, .wants_confidence = true});
  EXPECT_EQ(one.tokens, std::vector<Token>{1});
  EXPECT_FLOAT_EQ(one.confidence.at(0), c.confidence[0]);
  // And of what is left it has 0.95, so nothing else is worth a branch.
  const DraftShape sure{.split_p = 0.1f, .p_min = 0.9f, .p_ratio = 10.0f};
  for (const bool draws : {false, true}) {
    const DraftChoice d = choose_draft(row, greedy,
                                       {.shape = sure,
                                        .max_children = 3,
                                        .draws = draws,
                                        .greedy = true,
                                        .wants_confidence = true});
    EXPECT_EQ(d.tokens, std::vector<Token>{1});
    EXPECT_GT(d.confidence.at(0), 0.9f);
  }
}

TEST(DraftChoice, WhereAGreedyChainLeftTheLeastLikelyTokenItIsSure) {
  const std::vector<float> row = {5.0f, 4.0f, 1.0f, 4.5f};
  const float logit = 1.0f;
  const Token only = 2;
  const Distribution greedy{.logits = {&logit, 1}, .tokens = {&only, 1}};
  const DraftChoice c = choose_draft(row, greedy,
                                     {.shape = {.split_p = 0.0f, .p_min = 0.9f},
                                      .max_children = 4,
                                      .greedy = true,
                                      .wants_confidence = true});
  EXPECT_EQ(c.tokens, std::vector<Token>{2});
  EXPECT_EQ(c.confidence, std::vector<float>{1.0f});
}

TEST(DraftChoice, OneTokenThatAFilterLeftIsCertain) {
  const float logit = -1.0f;  // the least likely of the row, but all that a grammar allows
  const Token only = 3;
  const Distribution q{.logits = {&logit, 1}, .tokens = {&only, 1}};
  const DraftShape shape{.split_p = 0.0f, .p_min = 0.9f, .p_ratio = 5.0f};
  EXPECT_EQ(choose_draft(kRow, q, {.shape = shape, .max_children = 4}).tokens,
            std::vector<Token>{3});
}

TEST(DraftShape, ValuesOutOfRangeNameTheirOption) {
  EXPECT_TRUE(validate(DraftShape{}).ok());
  const auto message = [](const DraftShape& shape) { return validate(shape).message(); };
  EXPECT_NE(message({.branches = 0}).find("branches"), std::string::npos);
  EXPECT_NE(message({.split_p = 1.5f}).find("split_p"), std::string::npos);
  EXPECT_NE(message({.split_p = std::nanf("")}).find("split_p"), std::string::npos);
  EXPECT_NE(message({.p_min = -1.0f}).find("draft_p_min"), std::string::npos);
  EXPECT_NE(message({.p_ratio = -1.0f}).find("draft_p_ratio"), std::string::npos);
}

}  // namespace
}  // namespace outrider
