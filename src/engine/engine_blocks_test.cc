// A head that guesses blocks, on the hand-written models: what is its alone. What holds for every
// head: engine_heads_test.cc.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "testing/chi_square.h"
#include "testing/fake_engine.h"
#include "testing/fake_heads.h"
#include "testing/planned_heads.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

TEST(EngineBlocks, OnePassOfTheHeadGivesAllGuessesOfAStep) {
  for (const std::int32_t width : {2, 4, 6, 12}) {
    WithDflash pair(0.0f);
    Engine engine(pair.target, pair.vocabulary, {&pair.drafter});
    const Completion got = run(engine, pair, request({1, 2, 3, 4, 5}, 1.0f, 5, 40, width));
    EXPECT_GT(got.speculation.drafted, 15);
    EXPECT_LE(pair.head.guesses(), got.speculation.steps) << width;
  }
}

// What trees are for: where the head is unsure, more of a step comes true.
TEST(EngineBlocks, ATreeOfAsManyNodesAsAChainIsRightMoreOften) {
  std::int64_t steps[2] = {0, 0};
  for (const std::int32_t branches : {1, 8}) {
    WithDflash pair(2.0f, 512, 1, 600);
    Engine engine(pair.target, pair.vocabulary, {&pair.drafter});
    Request r = request({1, 2, 3}, 1.0f, 5, 500, 8);
    r.draft.branches = branches;
    r.draft.split_p = 0.0f;
    const Completion got = run(engine, pair, std::move(r));
    ASSERT_EQ(got.tokens.size(), 500U);
    steps[branches == 1 ? 0 : 1] = got.speculation.steps;
  }
  EXPECT_LT(steps[1] * 10, steps[0] * 9);
}

// The rules that compare probabilities keep the target's distribution: of the first tokens of many
// texts with different seeds.
TEST(EngineBlocks, WithDrawsTheFirstTokensHaveTheTargetsDistribution) {
  constexpr std::uint64_t kTexts = 6000;
  const std::vector<Token> prompt = {1, 2, 3};
  for (const AcceptanceRule rule : {AcceptanceRule::kRejection, AcceptanceRule::kBlock}) {
    WithDflash pair(1.0f, 512, 1, 64, /*spread=*/1.0f);
    std::vector<std::int64_t> counts(kVocab, 0);
    std::int64_t accepted = 0;
    Engine engine(pair.target, pair.vocabulary, {&pair.drafter});
    for (std::uint64_t seed = 0; seed < kTexts; ++seed) {
      Request r = request(prompt, 1.0f, seed, 3, 6);
      r.rule = rule;
      r.draft.branches = rule == AcceptanceRule::kBlock ? 1 : 4;
      r.draft.split_p = 0.0f;
      const Completion got = run(engine, pair, std::move(r));
      ++counts[static_cast<std::size_t>(got.tokens.at(2))];
      accepted += got.speculation.accepted;
    }
    EXPECT_GT(accepted, static_cast<std::int64_t>(kTexts) / 4);
    // Lagged by more than three tokens, so that the prompt alone decides the third one's.
    const std::vector<float> row = pair.rows(std::vector<Token>{1, 2, 3, 0, 0});
    const std::vector<double> p = probabilities({.logits = row});
    EXPECT_GT(chi_square_p(counts, p), 1e-4) << static_cast<int>(rule);
  }
}

// The planner counts one pass for all guesses of a block.
TEST(EngineBlocks, ThePlannerAsksAHeadThatIsRightAndLeavesOneThatIsNot) {
  for (const bool good : {true, false}) {
    WithDflash pair(good ? 0.0f : 100.0f, 512, 1, kPlannedContext);
    // Dearer than a token of the target: five guesses pay for it, a pass for each would not.
    const PlannedTexts got = planned_texts(pair, 1.5);
    if (good) {
      EXPECT_GT(got.first.accepted, 100);
      EXPECT_GT(got.later.accepted, 150);
    } else {
      EXPECT_LT(got.first.drafted, 90);
      EXPECT_LT(got.later.drafted, 45) << "of 300 tokens: it is looked at again, no more";
    }
  }
}

}  // namespace
}  // namespace outrider
