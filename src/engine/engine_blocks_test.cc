// A head that guesses blocks, on the hand-written models: the target's hidden states name tokens,
// and the head aborts the test when it reads the state of any other path than the text's. What the
// target says is decided kLag tokens ahead, so a head with its function is right in every guess of
// a block as long.
#include <gtest/gtest.h>

#include <set>

#include "draft/model/block_drafter.h"
#include "engine/engine.h"
#include "testing/chi_square.h"
#include "testing/fake_block_model.h"
#include "testing/fake_engine.h"
#include "testing/planned_world.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

constexpr std::int32_t kStates = 4;
constexpr std::size_t kLag = 5;

Capabilities target_capabilities(std::int32_t n_sequences, std::int32_t n_ctx) {
  Capabilities caps = capabilities(n_sequences, n_ctx);
  caps.n_hidden = kStates;
  caps.can_share = true;
  return caps;
}

BlockCapabilities head_capabilities(std::int32_t n_sequences, std::int32_t n_ctx) {
  return {.n_vocab = kVocab,
          .n_ctx = n_ctx,
          .n_batch = 24,
          .n_sequences = n_sequences,
          .n_states = kStates,
          .most_guesses = static_cast<std::int32_t>(kLag),
          .can_share = true};
}

// A target, and a head that has its numbers with noise.
struct Pair {
  explicit Pair(float noise, std::size_t window = 512, std::int32_t n_sequences = 3,
                std::int32_t n_ctx = 64, float spread = 3.0f)
      : rows(lagged_rows(random_rows(kVocab, 7, spread), kLag)),
        target(target_capabilities(n_sequences, n_ctx), rows),
        head(head_capabilities(n_sequences, n_ctx), noisy_rows(rows, 9, noise)),
        drafter(head, kVocab, {}, window) {}

  RowFunction rows;
  FakeModel target;
  FakeBlockModel head;
  FakeVocabulary vocabulary{kVocab};
  BlockDrafter drafter;
};

Completion run(Engine& engine, Pair& pair, Request r) {
  const RequestId id = *engine.add(std::move(r));
  run_all(engine, &pair.drafter);
  return *engine.take(id);
}

TEST(EngineBlocks, AHeadThatEqualsTheTargetIsRightInEveryGuessAtEveryTemperature) {
  for (const float temperature : {0.0f, 0.7f, 1.0f}) {
    for (const std::int32_t width : {2, 4, 6, 12}) {
      Pair pair(0.0f);
      Engine engine(pair.target, pair.vocabulary, {&pair.drafter});
      Request r = request({1, 2, 3, 4, 5}, temperature, 5, 40, width);
      r.draft.branches = 1;
      const Completion got = run(engine, pair, std::move(r));
      EXPECT_EQ(got.tokens, reference(pair.rows, {1, 2, 3, 4, 5}, temperature, 5, 40));
      EXPECT_GT(got.speculation.drafted, 15);
      EXPECT_EQ(got.speculation.accepted, got.speculation.drafted) << temperature << ' ' << width;
      EXPECT_EQ(got.speculation.drafters.at(0).name, "dflash");
      // One pass a step, whatever its width.
      EXPECT_LE(pair.head.guesses(), got.speculation.steps);
    }
  }
}

TEST(EngineBlocks, AHeadOfNoiseIsRightNextToNeverAndLeavesTheText) {
  Pair pair(100.0f);
  Engine engine(pair.target, pair.vocabulary, {&pair.drafter});
  const Completion got = run(engine, pair, request({1, 2, 3}, 0.0f, 5, 40, 4));
  EXPECT_EQ(got.tokens, reference(pair.rows, {1, 2, 3}, 0.0f, 5, 40));
  EXPECT_GT(got.speculation.drafted, 60);
  EXPECT_LT(got.speculation.accepted * 10, got.speculation.drafted * 3);
}

TEST(EngineBlocks, TextsOfSeveralSlotsAreThoseOfPlainDecodingWithChainsAndTrees) {
  std::set<std::int64_t> depths;
  for (const float noise : {0.5f, 1.5f, 3.0f}) {
    for (const std::int32_t branches : {1, 4}) {
      Pair pair(noise);
      Engine engine(pair.target, pair.vocabulary, {&pair.drafter}, {.prompt_chunk = 3});
      std::vector<RequestId> ids;
      for (std::uint64_t i = 0; i < 3; ++i) {
        Request r = request({static_cast<Token>(i), 2, 3, 4, 5, 6}, i == 0 ? 0.0f : 1.0f, i, 30, 6);
        r.draft.branches = branches;
        r.draft.split_p = 0.01f;
        ids.push_back(*engine.add(std::move(r)));
      }
      run_all(engine, &pair.drafter);
      for (std::uint64_t i = 0; i < 3; ++i) {
        const Completion got = *engine.take(ids[i]);
        const std::vector<Token> prompt = {static_cast<Token>(i), 2, 3, 4, 5, 6};
        EXPECT_EQ(got.tokens, reference(pair.rows, prompt, i == 0 ? 0.0f : 1.0f, i, 30));
        EXPECT_GT(got.speculation.accepted, 0);
        for (const DepthStats& depth : got.speculation.by_depth) depths.insert(depth.accepted);
      }
    }
  }
  EXPECT_GT(depths.size(), 4U) << "few acceptance counts were seen";
}

// What trees are for: where the head is unsure, more of a step comes true.
TEST(EngineBlocks, ATreeOfAsManyNodesAsAChainIsRightMoreOften) {
  std::int64_t steps[2] = {0, 0};
  for (const std::int32_t branches : {1, 8}) {
    Pair pair(2.0f, 512, 1, 600);
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

// At every length and every window, and at the context's edge.
TEST(EngineBlocks, AnyEndLeavesTheTextAndTheState) {
  for (const std::size_t window : {1U, 2U, 5U, 512U}) {
    for (std::int32_t n = 1; n <= 24; ++n) {
      Pair pair(1.0f, window, /*n_sequences=*/1, /*n_ctx=*/26);
      Engine engine(pair.target, pair.vocabulary, {&pair.drafter}, {.reuse_prefix = true});
      std::vector<Token> whole = {1, 2, 3};
      const std::vector<Token> said = reference(pair.rows, whole, 1.0f, 5, 24);
      Completion got = run(engine, pair, request(whole, 1.0f, 5, n, 5));
      const std::size_t room = std::min<std::size_t>(static_cast<std::size_t>(n), 23);
      EXPECT_EQ(got.tokens,
                std::vector<Token>(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(room)))
          << window << ' ' << n;
      // The next text begins with all of it, or with a part.
      whole.insert(whole.end(), got.tokens.begin(), got.tokens.end());
      for (const std::size_t kept : {whole.size(), whole.size() / 2, std::size_t{2}}) {
        std::vector<Token> next(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(kept));
        if (next.size() > 20) next.resize(20);
        next.push_back(11);
        const Completion again = run(engine, pair, request(next, 1.0f, 6, 4, 5));
        EXPECT_EQ(again.tokens, reference(pair.rows, next, 1.0f, 6, 4)) << window << ' ' << n;
        EXPECT_GT(again.cached_tokens, 0);
      }
    }
  }
}

TEST(EngineBlocks, AStopStringAtAnyOffsetOfABlockLeavesTheNextTextItsState) {
  const std::vector<Token> prompt = {1, 2, 3};
  const std::vector<Token> said = reference(Pair(0.3f).rows, prompt, 1.0f, 5, 20);
  for (std::size_t at = 1; at + 1 < said.size(); ++at) {
    Pair pair(0.3f);
    Engine engine(pair.target, pair.vocabulary, {&pair.drafter}, {.reuse_prefix = true});
    Request r = request(prompt, 1.0f, 5, 20, 6);
    r.stop = {std::string(pair.vocabulary.piece(said[at])) +
              std::string(pair.vocabulary.piece(said[at + 1]))};
    const Completion got = run(engine, pair, std::move(r));
    EXPECT_EQ(got.finish, FinishReason::kStop);
    std::vector<Token> next = prompt;
    next.insert(next.end(), got.tokens.begin(), got.tokens.end());
    next.push_back(9);
    const Completion again = run(engine, pair, request(next, 0.7f, 8, 10, 6));
    EXPECT_EQ(again.tokens, reference(pair.rows, next, 0.7f, 8, 10)) << at;
    EXPECT_GT(again.speculation.accepted, 0);
  }
}

TEST(EngineBlocks, ACancelledTextAndAShiftedOneLeaveTheOthersAsTheyAre) {
  for (std::int32_t steps = 0; steps < 8; ++steps) {
    Pair pair(0.5f, 512, /*n_sequences=*/2, /*n_ctx=*/24);
    Engine engine(pair.target, pair.vocabulary, {&pair.drafter}, {.reuse_prefix = true});
    const RequestId cancelled = *engine.add(request({5, 6, 7}, 1.0f, 3, 15, 4));
    Request shifted = request({1, 2, 3}, 1.0f, 5, 60, 4);
    shifted.shift_keep = 3;
    const RequestId id = *engine.add(std::move(shifted));
    for (std::int32_t i = 0; i < steps; ++i) {
      engine.step();
      ASSERT_EQ(pair.drafter.check_integrity(), "");
    }
    engine.cancel(cancelled);
    run_all(engine, &pair.drafter);
    const Completion got = *engine.take(id);
    Pair other(0.5f, 512, 2, 24);
    Request plain = request({1, 2, 3}, 1.0f, 5, 60, 1);
    plain.shift_keep = 3;
    EXPECT_EQ(got.tokens, complete(other.target, other.vocabulary, {}, std::move(plain)).tokens)
        << steps;
    EXPECT_GT(got.shifts, 0);
    EXPECT_GT(got.speculation.accepted, 10);
  }
}

TEST(EngineBlocks, ASharedPrefixComesWithItsStates) {
  Pair pair(0.0f);
  Engine engine(pair.target, pair.vocabulary, {&pair.drafter}, {.reuse_prefix = true});
  const std::vector<Token> prompt = {1, 2, 3, 4, 5, 6, 7, 8};
  const RequestId first = *engine.add(request(prompt, 1.0f, 5, 30, 4));
  for (int i = 0; i < 3; ++i) engine.step();
  std::vector<Token> longer = prompt;
  longer.push_back(9);
  Request r = request(longer, 1.0f, 6, 12, 4);
  r.draft.branches = 1;
  const Completion second = run(engine, pair, std::move(r));
  EXPECT_GT(second.cached_tokens, 4);
  EXPECT_EQ(second.tokens, reference(pair.rows, longer, 1.0f, 6, 12));
  EXPECT_EQ(second.speculation.accepted, second.speculation.drafted);
  EXPECT_EQ(engine.take(first)->tokens, reference(pair.rows, prompt, 1.0f, 5, 30));
}

TEST(EngineBlocks, TargetsThatCannotDropTokensShowTheirStatesAgain) {
  for (const Rollback rollback : {Rollback::kSnapshot, Rollback::kSaved}) {
    Pair pair(0.7f);
    Capabilities caps = target_capabilities(3, 64);
    caps.rollback = rollback;
    caps.max_leaves = 1;
    caps.can_share = false;
    FakeModel target(caps, pair.rows);
    const Completion got =
        complete(target, pair.vocabulary, {&pair.drafter}, request({1, 2, 3}, 1.0f, 5, 40, 4));
    EXPECT_EQ(got.tokens, reference(pair.rows, {1, 2, 3}, 1.0f, 5, 40));
    EXPECT_GT(got.speculation.accepted, 5);
    EXPECT_LT(got.speculation.accepted, got.speculation.drafted);
  }
}

// The rules that compare probabilities keep the target's distribution: of the first tokens of many
// texts with different seeds.
TEST(EngineBlocks, WithDrawsTheFirstTokensHaveTheTargetsDistribution) {
  constexpr std::uint64_t kTexts = 6000;
  const std::vector<Token> prompt = {1, 2, 3};
  for (const AcceptanceRule rule : {AcceptanceRule::kRejection, AcceptanceRule::kBlock}) {
    Pair pair(1.0f, 512, 1, 64, /*spread=*/1.0f);
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
  const PlanMachine machine = plan_machines()[0];
  for (const bool good : {true, false}) {
    Pair pair(good ? 0.0f : 100.0f, 512, 1, kPlannedContext);
    double now_ms = 0.0;
    pair.target.on_evaluated([&](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
    // Dearer than a token of the target: five guesses pay for it, a pass for each would not.
    pair.head.on_guess([&](std::int64_t) { now_ms += 1.5 * machine.ms(1); });
    Engine engine(pair.target, pair.vocabulary, {&pair.drafter},
                  {.now_ms = [&now_ms] { return now_ms; }});
    engine.planner().set_target_cost(measured_curve(machine));
    const Completion got = run(engine, pair, request({1, 2}, 1.0f, 5, 300, kAutoWidth));
    EXPECT_EQ(got.tokens, reference(pair.rows, {1, 2}, 1.0f, 5, 300));
    const Completion later = run(engine, pair, request({1, 2}, 1.0f, 6, 300, kAutoWidth));
    if (good) {
      EXPECT_GT(got.speculation.accepted, 100);
      EXPECT_GT(later.speculation.accepted, 150);
    } else {
      EXPECT_LT(got.speculation.drafted, 90);
      EXPECT_LT(later.speculation.drafted, 45) << "of 300 tokens: it is looked at again, no more";
    }
  }
}

}  // namespace
}  // namespace outrider
