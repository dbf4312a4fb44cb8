// Heads that guess a token at a time, prediction layers and EAGLE-3's, on the hand-written models:
// what is theirs alone. What holds for every head: engine_heads_test.cc.
#include <gtest/gtest.h>

#include "draft/model/head_chain.h"
#include "engine/engine.h"
#include "testing/fake_engine.h"
#include "testing/fake_heads.h"
#include "testing/planned_heads.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

template <typename Pair>
class EngineChainHeads : public ::testing::Test {};

using ChainHeads = ::testing::Types<WithMtp, WithEagle3>;
TYPED_TEST_SUITE(EngineChainHeads, ChainHeads, NameOfHead);

// A prompt's beginning is not read.
TYPED_TEST(EngineChainHeads, AHeadReadsNoMoreOfAPromptThanItsWindow) {
  TypeParam pair(0.0f, /*window=*/4, /*n_sequences=*/1, /*n_ctx=*/64);
  Engine engine(pair.target, pair.vocabulary, {&pair.drafter});
  std::vector<Token> prompt;
  for (Token t = 0; t < 40; ++t) prompt.push_back(t % kVocab);
  Request r = request(prompt, 1.0f, 5, 12, 4);
  r.draft.branches = 1;
  const Completion got = run(engine, pair, std::move(r));
  EXPECT_EQ(got.tokens, reference(pair.rows, prompt, 1.0f, 5, 12));
  EXPECT_EQ(got.speculation.accepted, got.speculation.drafted);
  EXPECT_LT(pair.head.tokens_evaluated(), 40);
}

// Three layers, one for each depth: each aborts the test when it is given another path's states.
TEST(EngineHeadChains, AChainOfLayersThatEqualTheTargetIsRightInEveryGuess) {
  for (const std::size_t window : {3U, 512U}) {
    for (const float noise : {0.0f, 1.0f}) {
      const RowFunction rows = random_rows(kVocab, 7, 3.0f);
      FakeModel target(shows_states(), rows);
      FakeModel first(chain_head(false), noisy_rows(rows, 9, noise));
      FakeModel second(chain_head(false), noisy_rows(rows, 10, noise));
      FakeModel third(chain_head(false), noisy_rows(rows, 11, noise));
      HeadChain chain({&first, &second, &third}, window);
      DraftModelDrafter drafter(chain, kVocab, {}, true, chain_head_options(false));
      const FakeVocabulary vocabulary(kVocab);
      Engine engine(target, vocabulary, {&drafter}, {.prompt_chunk = 3, .reuse_prefix = true});
      const std::vector<Token> prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9};
      for (std::uint64_t round = 0; round < 2; ++round) {
        std::vector<RequestId> ids;
        for (std::uint64_t i = 0; i < 3; ++i) {
          Request r = request(prompt, 1.0f, 10 * round + i, 30, 2 + 3 * static_cast<int>(i));
          r.draft.branches = noise > 0.0f ? 3 : 1;
          r.draft.model_branches = r.draft.branches;
          r.draft.split_p = 0.01f;
          ids.push_back(*engine.add(std::move(r)));
        }
        while (engine.busy()) {
          engine.step();
          ASSERT_EQ(drafter.check_integrity(), "");
          ASSERT_EQ(chain.check_integrity(), "");
        }
        for (std::uint64_t i = 0; i < 3; ++i) {
          const Completion got = *engine.take(ids[i]);
          EXPECT_EQ(got.tokens, reference(rows, prompt, 1.0f, 10 * round + i, 30));
          EXPECT_GT(got.speculation.accepted, 5);
          if (noise == 0.0f) {
            EXPECT_EQ(got.speculation.accepted, got.speculation.drafted);
          }
        }
      }
      EXPECT_GT(second.tokens_evaluated(), 0);
      EXPECT_GT(third.tokens_evaluated(), 0);
    }
  }
}

// The planner's accounts are the draft model's: a head that is wrong is asked now and then, one
// that is right goes on.
TYPED_TEST(EngineChainHeads, AHeadWhoseAcceptanceCollapsesIsAskedOnlyNowAndThen) {
  for (const bool good : {true, false}) {
    TypeParam pair(good ? 0.0f : 100.0f, 512, 1, kPlannedContext);
    const PlannedTexts got = planned_texts(pair, 0.2);
    if (good) {
      EXPECT_GT(got.first.accepted, 100);
      EXPECT_GT(got.later.accepted, 100);
    } else {
      EXPECT_LT(got.first.drafted, 100) << "of cheap guesses, a few at a time";
      EXPECT_LT(got.later.drafted, 30) << "of 300 tokens: it is looked at again, no more";
    }
  }
}

// A head whose context was full begins anew once its window has left behind what it knew: what it
// reads then is reading, and no loss of its guesses.
TEST(EngineHeadContexts, WhatIsReadWhereThereIsRoomAgainIsNotChargedAsDrafting) {
  const PlanMachine machine = plan_machines()[0];
  const RowFunction rows = random_rows(kVocab, 7, 3.0f);
  FakeModel target(shows_states(1, kPlannedContext), rows);
  FakeModel head(chain_head(false, 1, /*n_ctx=*/128), rows);
  DraftModelDrafter drafter(head, kVocab, {}, /*learns=*/false,
                            chain_head_options(false, /*window=*/100));
  const FakeVocabulary vocabulary(kVocab);
  double now_ms = 0.0;
  target.on_evaluated([&](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
  // Reading is dear, a few tokens are not.
  head.on_evaluated([&](std::int64_t n) {
    now_ms += (n > 16 ? 0.5 : 0.02) * static_cast<double>(n) * machine.ms(1);
  });
  Engine engine(target, vocabulary, {&drafter}, {.now_ms = [&] { return now_ms; }});
  engine.planner().set_target_cost(measured_curve(machine));
  const RequestId id = *engine.add(request({1, 2}, 1.0f, 5, 400, kAutoWidth));
  bool was_full = false;
  bool read_again = false;
  while (engine.busy()) {
    const std::int64_t before = head.tokens_evaluated();
    engine.step();
    EXPECT_FALSE(engine.planner().account(0).suspended());
    if (!drafter.limit_reason(0).empty()) was_full = true;
    read_again = read_again || (was_full && head.tokens_evaluated() - before > 60);
  }
  EXPECT_TRUE(was_full);
  EXPECT_TRUE(read_again);
  EXPECT_GT(engine.take(id)->speculation.accepted, 100);
}

// Negative control: states of rejected guesses would be noticed, here and in the drafter.
TYPED_TEST(EngineChainHeads, AStateOfAnotherTokenIsNoticed) {
  TypeParam pair(0.0f);
  ASSERT_TRUE(pair.drafter.begin(0, 0).ok());
  const std::vector<Token> text = {1, 2, 3};
  const std::vector<float> row(kHeadStates, 0.0f);
  pair.drafter.see_hidden(0, 0, 1, row);
  pair.drafter.see_hidden(0, 1, 5, row);
  TokenTree tree(3);
  FakeSampler sampler(0.0f);
  DraftRequest request{
      .seq = 0, .text = text, .sampler = &sampler, .max_nodes = 3, .mask = 1, .tree = &tree};
  const Status drafted = draft_one(pair.drafter, request);
  EXPECT_EQ(drafted.code(), StatusCode::kInternal);
  EXPECT_NE(drafted.message().find("not the text's"), std::string::npos) << drafted.message();
}

// Each row of the target is encoded once, and those that the window has lost by the time not at all
// where they came together.
TEST(EngineHeadsEncoding, EachStateIsEncodedOnce) {
  WithEagle3 pair(1.0f);
  Engine engine(pair.target, pair.vocabulary, {&pair.drafter}, {.reuse_prefix = true});
  std::vector<Token> text = {1, 2, 3, 4, 5};
  const Completion got = run(engine, pair, request(text, 1.0f, 5, 30, 4));
  EXPECT_LE(pair.head.rows_encoded(), 34);
  EXPECT_GT(pair.head.rows_encoded(), 25);
  text.insert(text.end(), got.tokens.begin(), got.tokens.end());
  text.push_back(3);
  const std::int64_t before = pair.head.rows_encoded();
  (void)run(engine, pair, request(text, 1.0f, 6, 10, 4));
  EXPECT_LE(pair.head.rows_encoded() - before, 14) << "what the text began with was known";
}

TEST(EngineHeadsEncoding, AFailureOfTheEncoderCostsTheDraftAndIsTold) {
  WithEagle3 pair(0.0f);
  Engine engine(pair.target, pair.vocabulary, {&pair.drafter});
  pair.head.fail_encode({Status(), internal_error("the encoder is broken")});
  const Completion got = run(engine, pair, request({1, 2, 3}, 1.0f, 5, 30, 4));
  EXPECT_EQ(got.tokens, reference(pair.rows, {1, 2, 3}, 1.0f, 5, 30));
  EXPECT_NE(got.speculation.reason.find("the encoder is broken"), std::string::npos)
      << got.speculation.reason;
}

// A prompt's rows are encoded while it is read, a few at a time.
TEST(EngineHeadsEncoding, ALongPromptsStatesDoNotPileUp) {
  WithEagle3 pair(0.0f, /*window=*/8, /*n_sequences=*/1, /*n_ctx=*/400);
  Engine engine(pair.target, pair.vocabulary, {&pair.drafter}, {.prompt_chunk = 50});
  std::vector<Token> prompt;
  for (Token t = 0; t < 300; ++t) prompt.push_back(t % kVocab);
  Request r = request(prompt, 1.0f, 5, 12, 4);
  r.draft.branches = 1;
  const Completion got = run(engine, pair, std::move(r));
  EXPECT_EQ(got.tokens, reference(pair.rows, prompt, 1.0f, 5, 12));
  EXPECT_EQ(got.speculation.accepted, got.speculation.drafted);
  EXPECT_LT(pair.head.rows_encoded(), 40) << "rows that the window lost were encoded";
}

}  // namespace
}  // namespace outrider
