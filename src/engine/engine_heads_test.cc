// Trained heads on the hand-written model: its hidden states name tokens, and a head's model aborts
// the test when it is given the state of any other path than the text's. A head with the target's
// function is right in every guess only if each state is of the right token.
#include <gtest/gtest.h>

#include <set>

#include "draft/model/head_chain.h"
#include "engine/engine.h"
#include "testing/fake_engine.h"
#include "testing/planned_world.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

constexpr std::int32_t kStateTokens = 4;  // more than random_rows looks at

Capabilities target_capabilities(std::int32_t n_sequences = 3, std::int32_t n_ctx = 64) {
  Capabilities caps = capabilities(n_sequences, n_ctx);
  caps.n_hidden = kStateTokens;
  caps.can_share = true;
  return caps;
}

// `encodes`: as EAGLE-3 heads do; else as prediction layers.
Capabilities head_capabilities(bool encodes, std::int32_t n_sequences = 3,
                               std::int32_t n_ctx = 64) {
  Capabilities caps = target_capabilities(n_sequences, n_ctx);
  caps.n_hidden_in = kStateTokens;
  caps.n_encoded = encodes ? kStateTokens : 0;
  return caps;
}

HeadOptions head_options(bool encodes, std::size_t window = 512) {
  return {.name = encodes ? "eagle3" : "mtp", .window = window, .reads_first = !encodes};
}

// A target, and a head that has its numbers with noise.
struct Pair {
  Pair(bool encodes, float noise, std::size_t window = 512, std::int32_t n_sequences = 3,
       std::int32_t n_ctx = 64)
      : rows(random_rows(kVocab, 7, 3.0f)),
        target(target_capabilities(n_sequences, n_ctx), rows),
        head(head_capabilities(encodes, n_sequences, n_ctx), noisy_rows(rows, 9, noise)),
        drafter(head, kVocab, {}, /*learns=*/true, head_options(encodes, window)) {}

  RowFunction rows;
  FakeModel target;
  FakeModel head;
  FakeVocabulary vocabulary{kVocab};
  DraftModelDrafter drafter;
};

Completion run(Engine& engine, Pair& pair, Request r) {
  const RequestId id = *engine.add(std::move(r));
  run_all(engine, &pair.drafter);
  return *engine.take(id);
}

// Whether the head encodes the target's states first.
class EngineHeads : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Kinds, EngineHeads, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& kind) {
                           return kind.param ? "Encoding" : "Plain";
                         });

TEST_P(EngineHeads, AHeadThatEqualsTheTargetIsRightInEveryGuess) {
  for (const float temperature : {0.0f, 0.7f, 1.0f}) {
    for (const std::int32_t width : {2, 4, 8}) {
      Pair pair(GetParam(), 0.0f);
      Engine engine(pair.target, pair.vocabulary, {&pair.drafter});
      Request r = request({1, 2, 3, 4, 5}, temperature, 5, 40, width);
      r.draft.branches = 1;
      const Completion got = run(engine, pair, std::move(r));
      EXPECT_EQ(got.tokens, reference(pair.rows, {1, 2, 3, 4, 5}, temperature, 5, 40));
      EXPECT_GT(got.speculation.drafted, 15);
      EXPECT_EQ(got.speculation.accepted, got.speculation.drafted) << temperature << ' ' << width;
      EXPECT_EQ(got.speculation.drafters.at(0).name, head_options(GetParam()).name);
    }
  }
}

TEST_P(EngineHeads, AHeadOfNoiseIsRightNextToNeverAndLeavesTheText) {
  Pair pair(GetParam(), 100.0f);
  Engine engine(pair.target, pair.vocabulary, {&pair.drafter});
  const Completion got = run(engine, pair, request({1, 2, 3}, 0.0f, 5, 40, 4));
  EXPECT_EQ(got.tokens, reference(pair.rows, {1, 2, 3}, 0.0f, 5, 40));
  EXPECT_GT(got.speculation.drafted, 60);
  EXPECT_LT(got.speculation.accepted * 10, got.speculation.drafted * 3);
}

TEST_P(EngineHeads, TextsOfSeveralSlotsAreThoseOfPlainDecodingWithChainsAndTrees) {
  std::set<std::int64_t> depths;
  for (const float noise : {0.5f, 1.5f, 3.0f}) {
    for (const std::int32_t branches : {1, 4}) {
      Pair pair(GetParam(), noise);
      Engine engine(pair.target, pair.vocabulary, {&pair.drafter}, {.prompt_chunk = 3});
      std::vector<RequestId> ids;
      for (std::uint64_t i = 0; i < 3; ++i) {
        const Token first = static_cast<Token>(i);
        Request r = request({first, 2, 3, 4, 5, 6}, i == 0 ? 0.0f : 1.0f, i, 30, 6);
        r.draft.branches = branches;
        r.draft.model_branches = branches;
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

// At every length and every window, stop strings and the context's edge included.
TEST_P(EngineHeads, AnyEndLeavesTheTextAndTheState) {
  for (const std::size_t window : {1U, 2U, 5U, 512U}) {
    for (std::int32_t n = 1; n <= 24; ++n) {
      Pair pair(GetParam(), 1.0f, window, /*n_sequences=*/1, /*n_ctx=*/26);
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

TEST_P(EngineHeads, AStopStringAtAnyOffsetOfABlockLeavesTheNextTextItsState) {
  const RowFunction rows = random_rows(kVocab, 7, 3.0f);
  const std::vector<Token> prompt = {1, 2, 3};
  const std::vector<Token> said = reference(rows, prompt, 1.0f, 5, 20);
  for (std::size_t at = 1; at + 1 < said.size(); ++at) {
    Pair pair(GetParam(), 0.3f);
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

TEST_P(EngineHeads, ACancelledTextAndAShiftedOneLeaveTheOthersAsTheyAre) {
  for (std::int32_t steps = 0; steps < 8; ++steps) {
    Pair pair(GetParam(), 0.5f, 512, /*n_sequences=*/2, /*n_ctx=*/24);
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
    const Completion plain = [&] {
      Pair other(GetParam(), 0.5f, 512, 2, 24);
      Engine alone(other.target, other.vocabulary, {});
      Request r = request({1, 2, 3}, 1.0f, 5, 60, 1);
      r.shift_keep = 3;
      return complete(other.target, other.vocabulary, {}, std::move(r));
    }();
    EXPECT_EQ(got.tokens, plain.tokens) << steps;
    EXPECT_GT(got.shifts, 0);
    EXPECT_GT(got.speculation.accepted, 10);
  }
}

// What two requests begin with is shared, hidden states included.
TEST_P(EngineHeads, ASharedPrefixComesWithItsStates) {
  Pair pair(GetParam(), 0.0f);
  Engine engine(pair.target, pair.vocabulary, {&pair.drafter}, {.reuse_prefix = true});
  const std::vector<Token> prompt = {1, 2, 3, 4, 5, 6, 7, 8};
  const RequestId first = *engine.add(request(prompt, 1.0f, 5, 30, 4));
  for (int i = 0; i < 3; ++i) engine.step();
  std::vector<Token> longer = prompt;
  longer.push_back(9);
  const Completion second = run(engine, pair, request(longer, 1.0f, 6, 12, 4));
  EXPECT_GT(second.cached_tokens, 4);
  EXPECT_EQ(second.tokens, reference(pair.rows, longer, 1.0f, 6, 12));
  EXPECT_EQ(second.speculation.accepted, second.speculation.drafted);
  EXPECT_EQ(engine.take(first)->tokens, reference(pair.rows, prompt, 1.0f, 5, 30));
}

// A prompt's beginning is not read.
TEST_P(EngineHeads, AHeadReadsNoMoreOfAPromptThanItsWindow) {
  Pair pair(GetParam(), 0.0f, /*window=*/4, /*n_sequences=*/1, /*n_ctx=*/64);
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

// Models with recurrent layers keep less than the path; what they read again comes again.
TEST_P(EngineHeads, TargetsThatCannotDropTokensShowTheirStatesAgain) {
  for (const Rollback rollback : {Rollback::kSnapshot, Rollback::kSaved}) {
    RowFunction rows = random_rows(kVocab, 7, 3.0f);
    Capabilities caps = target_capabilities();
    caps.rollback = rollback;
    caps.max_leaves = 1;
    caps.can_share = false;
    FakeModel target(caps, rows);
    FakeModel head(head_capabilities(GetParam()), noisy_rows(rows, 9, 0.7f));
    DraftModelDrafter drafter(head, kVocab, {}, true, head_options(GetParam()));
    const FakeVocabulary vocabulary(kVocab);
    const Completion got =
        complete(target, vocabulary, {&drafter}, request({1, 2, 3}, 1.0f, 5, 40, 4));
    EXPECT_EQ(got.tokens, reference(rows, {1, 2, 3}, 1.0f, 5, 40));
    EXPECT_GT(got.speculation.accepted, 5);
    EXPECT_LT(got.speculation.accepted, got.speculation.drafted);
  }
}

// Three layers, one for each depth: each aborts the test when it is given another path's states.
TEST(EngineHeadChains, AChainOfLayersThatEqualTheTargetIsRightInEveryGuess) {
  for (const std::size_t window : {3U, 512U}) {
    for (const float noise : {0.0f, 1.0f}) {
      const RowFunction rows = random_rows(kVocab, 7, 3.0f);
      FakeModel target(target_capabilities(), rows);
      FakeModel first(head_capabilities(false), noisy_rows(rows, 9, noise));
      FakeModel second(head_capabilities(false), noisy_rows(rows, 10, noise));
      FakeModel third(head_capabilities(false), noisy_rows(rows, 11, noise));
      HeadChain chain({&first, &second, &third}, window);
      DraftModelDrafter drafter(chain, kVocab, {}, true, head_options(false));
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
TEST_P(EngineHeads, AHeadWhoseAcceptanceCollapsesIsAskedOnlyNowAndThen) {
  const PlanMachine machine = plan_machines()[0];
  for (const bool good : {true, false}) {
    Pair pair(GetParam(), good ? 0.0f : 100.0f, 512, 1, kPlannedContext);
    double now_ms = 0.0;
    pair.target.on_evaluated([&](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
    pair.head.on_evaluated([&](std::int64_t) { now_ms += 0.2 * machine.ms(1); });
    Engine engine(pair.target, pair.vocabulary, {&pair.drafter},
                  {.now_ms = [&now_ms] { return now_ms; }});
    engine.planner().set_target_cost(measured_curve(machine));
    const Completion got = run(engine, pair, request({1, 2}, 1.0f, 5, 300, kAutoWidth));
    EXPECT_EQ(got.tokens, reference(pair.rows, {1, 2}, 1.0f, 5, 300));
    const Completion later = run(engine, pair, request({1, 2}, 1.0f, 6, 300, kAutoWidth));
    if (good) {
      EXPECT_GT(got.speculation.accepted, 100);
      EXPECT_GT(later.speculation.accepted, 100);
    } else {
      EXPECT_LT(got.speculation.drafted, 60);
      EXPECT_LT(later.speculation.drafted, 30) << "of 300 tokens: it is looked at again, no more";
    }
  }
}

// Negative control: states of rejected guesses would be noticed, here and in the drafter.
TEST_P(EngineHeads, AStateOfAnotherTokenIsNoticed) {
  Pair pair(GetParam(), 0.0f);
  ASSERT_TRUE(pair.drafter.begin(0, 0).ok());
  const std::vector<Token> text = {1, 2, 3};
  const std::vector<float> row(kStateTokens, 0.0f);
  pair.drafter.see_hidden(0, 0, 1, row);
  pair.drafter.see_hidden(0, 1, 5, row);
  TokenTree tree(3);
  FakeSampler sampler(0.0f);
  DraftRequest request[] = {
      {.seq = 0, .text = text, .sampler = &sampler, .max_nodes = 3, .mask = 1, .tree = &tree}};
  const Status drafted = pair.drafter.draft(request);
  EXPECT_EQ(drafted.code(), StatusCode::kInternal);
  EXPECT_NE(drafted.message().find("not the text's"), std::string::npos) << drafted.message();
}

// Each row of the target is encoded once, and those that the window has lost by the time not at all
// where they came together.
TEST(EngineHeadsEncoding, EachStateIsEncodedOnce) {
  Pair pair(/*encodes=*/true, 1.0f);
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
  Pair pair(/*encodes=*/true, 0.0f);
  Engine engine(pair.target, pair.vocabulary, {&pair.drafter});
  pair.head.fail_encode({Status(), internal_error("the encoder is broken")});
  const Completion got = run(engine, pair, request({1, 2, 3}, 1.0f, 5, 30, 4));
  EXPECT_EQ(got.tokens, reference(pair.rows, {1, 2, 3}, 1.0f, 5, 30));
  EXPECT_NE(got.speculation.reason.find("the encoder is broken"), std::string::npos)
      << got.speculation.reason;
}

// A prompt's rows are encoded while it is read, a few at a time.
TEST(EngineHeadsEncoding, ALongPromptsStatesDoNotPileUp) {
  Pair pair(/*encodes=*/true, 0.0f, /*window=*/8, /*n_sequences=*/1, /*n_ctx=*/400);
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
