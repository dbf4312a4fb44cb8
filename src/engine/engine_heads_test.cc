// Trained heads of each kind on the hand-written models (testing/fake_heads.h): what holds for all
// of them. What is one kind's alone: engine_chain_heads_test.cc, engine_blocks_test.cc.
#include <gtest/gtest.h>

#include <set>

#include "engine/engine.h"
#include "testing/fake_engine.h"
#include "testing/fake_heads.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

template <typename Pair>
class EngineHeads : public ::testing::Test {};

using AllHeads = ::testing::Types<WithMtp, WithEagle3, WithDflash>;
TYPED_TEST_SUITE(EngineHeads, AllHeads, NameOfHead);

TYPED_TEST(EngineHeads, AHeadThatEqualsTheTargetIsRightInEveryGuess) {
  for (const float temperature : {0.0f, 0.7f, 1.0f}) {
    for (const std::int32_t width : {2, 4, 6, 8, 12}) {
      TypeParam pair(0.0f);
      Engine engine(pair.target, pair.vocabulary, {&pair.drafter});
      Request r = request({1, 2, 3, 4, 5}, temperature, 5, 40, width);
      r.draft.branches = 1;
      const Completion got = run(engine, pair, std::move(r));
      EXPECT_EQ(got.tokens, reference(pair.rows, {1, 2, 3, 4, 5}, temperature, 5, 40));
      EXPECT_GT(got.speculation.drafted, 15);
      EXPECT_EQ(got.speculation.accepted, got.speculation.drafted) << temperature << ' ' << width;
      EXPECT_EQ(got.speculation.drafters.at(0).name, TypeParam::name());
    }
  }
}

TYPED_TEST(EngineHeads, AHeadOfNoiseIsRightNextToNeverAndLeavesTheText) {
  TypeParam pair(100.0f);
  Engine engine(pair.target, pair.vocabulary, {&pair.drafter});
  const Completion got = run(engine, pair, request({1, 2, 3}, 0.0f, 5, 40, 4));
  EXPECT_EQ(got.tokens, reference(pair.rows, {1, 2, 3}, 0.0f, 5, 40));
  EXPECT_GT(got.speculation.drafted, 60);
  EXPECT_LT(got.speculation.accepted * 10, got.speculation.drafted * 3);
}

TYPED_TEST(EngineHeads, TextsOfSeveralSlotsAreThoseOfPlainDecodingWithChainsAndTrees) {
  std::set<std::int64_t> depths;
  for (const float noise : {0.5f, 1.5f, 3.0f}) {
    for (const std::int32_t branches : {1, 4}) {
      TypeParam pair(noise);
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
TYPED_TEST(EngineHeads, AnyEndLeavesTheTextAndTheState) {
  for (const std::size_t window : {1U, 2U, 5U, 512U}) {
    for (std::int32_t n = 1; n <= 24; ++n) {
      TypeParam pair(1.0f, window, /*n_sequences=*/1, /*n_ctx=*/26);
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

TYPED_TEST(EngineHeads, AStopStringAtAnyOffsetOfABlockLeavesTheNextTextItsState) {
  const std::vector<Token> prompt = {1, 2, 3};
  const std::vector<Token> said = reference(TypeParam(0.3f).rows, prompt, 1.0f, 5, 20);
  for (std::size_t at = 1; at + 1 < said.size(); ++at) {
    TypeParam pair(0.3f);
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

TYPED_TEST(EngineHeads, ACancelledTextAndAShiftedOneLeaveTheOthersAsTheyAre) {
  for (std::int32_t steps = 0; steps < 8; ++steps) {
    TypeParam pair(0.5f, 512, /*n_sequences=*/2, /*n_ctx=*/24);
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
    TypeParam other(0.5f, 512, 2, 24);
    Request plain = request({1, 2, 3}, 1.0f, 5, 60, 1);
    plain.shift_keep = 3;
    EXPECT_EQ(got.tokens, complete(other.target, other.vocabulary, {}, std::move(plain)).tokens)
        << steps;
    EXPECT_GT(got.shifts, 0);
    EXPECT_GT(got.speculation.accepted, 10);
  }
}

// What two requests begin with is shared, hidden states included.
TYPED_TEST(EngineHeads, ASharedPrefixComesWithItsStates) {
  TypeParam pair(0.0f);
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

// Models with recurrent layers keep less than the path; what they read again comes again.
TYPED_TEST(EngineHeads, TargetsThatCannotDropTokensShowTheirStatesAgain) {
  for (const Rollback rollback : {Rollback::kSnapshot, Rollback::kSaved}) {
    TypeParam pair(0.7f);
    Capabilities caps = shows_states();
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

}  // namespace
}  // namespace outrider
