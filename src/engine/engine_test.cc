#include "engine/engine.h"

#include <gtest/gtest.h>

#include "testing/chi_square.h"
#include "testing/fake_engine.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

TEST(Engine, EveryDrafterWidthAndTemperatureGivesThePlainText) {
  const std::uint64_t seed = testing::test_seed(100);
  for (std::uint64_t round = 0; round < 12; ++round) {
    const RowFunction rows = random_rows(kVocab, seed + round, 3.0f);
    const std::vector<Token> prompt = {1, 2, static_cast<Token>(round % kVocab)};
    for (const float temperature : {0.0f, 0.7f, 1.0f}) {
      const std::vector<Token> want = reference(rows, prompt, temperature, seed, 30);
      std::vector<Token> whole = prompt;
      whole.insert(whole.end(), want.begin(), want.end());
      for (const auto& [name, script] : scripts(whole)) {
        for (const std::int32_t width : {1, 2, 3, 4, 8, 16}) {
          FakeModel target(capabilities(), rows);
          ScriptedDrafter drafter(script);
          const FakeVocabulary vocabulary(kVocab);
          const Completion got = complete(target, vocabulary, {&drafter},
                                          request(prompt, temperature, seed, 30, width));
          ASSERT_EQ(got.tokens, want) << name << ", width " << width << ", T " << temperature;
          const SpeculationStats& s = got.speculation;
          ASSERT_EQ(s.emitted, 30);
          ASSERT_LE(s.accepted, s.drafted);
          ASSERT_LE(s.drafted, s.steps * (width - 1));
          // The last step may have been cut by the limit: its own token was not said then.
          ASSERT_GE(s.accepted + s.steps, s.emitted);
          ASSERT_LE(s.accepted + s.steps, s.emitted + 1);
          expect_shape_adds_up(s);
        }
      }
    }
  }
}

TEST(Engine, ARightDrafterIsAcceptedWhole) {
  const RowFunction rows = random_rows(kVocab, 5, 3.0f);
  const std::vector<Token> prompt = {1};
  const std::vector<Token> want = reference(rows, prompt, 1.0f, 9, 40);
  std::vector<Token> whole = prompt;
  whole.insert(whole.end(), want.begin(), want.end());
  FakeModel target(capabilities(), rows);
  ScriptedDrafter drafter(prophet(whole, 100, 0, kVocab));
  const FakeVocabulary vocabulary(kVocab);
  const Completion got = complete(target, vocabulary, {&drafter}, request(prompt, 1.0f, 9, 40, 4));
  EXPECT_EQ(got.tokens, want);
  EXPECT_EQ(got.speculation.steps, 10);
  EXPECT_EQ(got.speculation.drafted, 30);
  EXPECT_EQ(got.speculation.accepted, 30);
  EXPECT_EQ(target.tokens_evaluated(), 40);
  EXPECT_EQ(got.speculation.steps_by_width, (std::vector<std::int64_t>{0, 0, 0, 0, 10}));
  ASSERT_EQ(got.speculation.by_depth.size(), 3U);
  for (const DepthStats& depth : got.speculation.by_depth) {
    EXPECT_EQ(depth.drafted, 10);
    EXPECT_EQ(depth.tested, 10);
    EXPECT_EQ(depth.accepted, 10);
  }
}

// What was guessed wrong ends the walk: deeper guesses of that step were not put to the test.
TEST(Engine, AcceptanceByDepthCountsOnlyWhatWasPutToTheTest) {
  const RowFunction rows = random_rows(kVocab, 5, 3.0f);
  const std::vector<Token> prompt = {1};
  std::vector<Token> whole = prompt;
  for (const Token token : reference(rows, prompt, 1.0f, 9, 40)) whole.push_back(token);
  FakeModel target(capabilities(), rows);
  // Right at depth 1, wrong at depth 2, and depth 3 hangs below what is wrong.
  ScriptedDrafter drafter([&whole](DraftRequest& r) {
    std::vector<Token> chain;
    for (std::size_t i = 0; i < 3 && r.text.size() + i < whole.size(); ++i) {
      const Token right = whole[r.text.size() + i];
      chain.push_back(i == 0 ? right : (right + 1) % kVocab);
    }
    add_chain(r, chain);
    return Status();
  });
  const FakeVocabulary vocabulary(kVocab);
  const Completion got = complete(target, vocabulary, {&drafter}, request(prompt, 1.0f, 9, 40, 4));
  const SpeculationStats& s = got.speculation;
  EXPECT_EQ(s.steps, 20);
  ASSERT_EQ(s.by_depth.size(), 3U);
  EXPECT_EQ(s.by_depth[0].tested, 20);
  EXPECT_EQ(s.by_depth[0].accepted, 20);
  EXPECT_EQ(s.by_depth[1].accepted, 0);
  EXPECT_EQ(s.by_depth[1].tested, s.by_depth[1].drafted);
  EXPECT_GT(s.by_depth[1].tested, 15);
  EXPECT_GT(s.by_depth[2].drafted, 15);
  EXPECT_EQ(s.by_depth[2].tested, 0);
}

TEST(Engine, AGuessBehindTheTokenThatEndsATextIsNotPutToTheTest) {
  const RowFunction rows = random_rows(kVocab, 5, 3.0f);
  const std::vector<Token> prompt = {1};
  const std::vector<Token> said = reference(rows, prompt, 1.0f, 9, 40);
  const FakeVocabulary vocabulary(kVocab);
  FakeModel target(capabilities(), rows);
  ScriptedDrafter drafter([&](DraftRequest& r) {
    std::vector<Token> chain;
    for (std::size_t i = r.text.size() - 1; i < said.size() && chain.size() < 7; ++i) {
      chain.push_back(said[i]);
    }
    add_chain(r, chain);
    return Status();
  });
  Request r = request(prompt, 1.0f, 9, 40, 8);
  r.stop = {std::string(vocabulary.piece(said[2])) + std::string(vocabulary.piece(said[3]))};
  const Completion got = complete(target, vocabulary, {&drafter}, std::move(r));
  const SpeculationStats& s = got.speculation;
  ASSERT_EQ(s.steps, 1);
  ASSERT_EQ(s.by_depth.size(), 7U);
  for (std::size_t i = 0; i < s.by_depth.size(); ++i) {
    const int judged = i < 4 ? 1 : 0;
    EXPECT_EQ(s.by_depth[i].tested, judged) << i;
    EXPECT_EQ(s.by_depth[i].accepted, judged) << i;
  }
}

TEST(Engine, EveryAcceptanceCountFromNoneToAllKeepsBothCachesInStep) {
  const RowFunction rows = random_rows(kVocab, 6, 3.0f);
  const std::vector<Token> prompt = {1, 2};
  const std::vector<Token> want = reference(rows, prompt, 1.0f, 9, 40);
  std::vector<Token> whole = prompt;
  whole.insert(whole.end(), want.begin(), want.end());
  for (std::int32_t right = 0; right <= 7; ++right) {
    // `right` good tokens, then bad ones up to the width.
    const Script script = [&](DraftRequest& r) {
      std::vector<Token> chain;
      for (std::int32_t i = 0; i < r.max_nodes; ++i) {
        const std::size_t at = r.text.size() + static_cast<std::size_t>(i);
        const Token good = at < whole.size() ? whole[at] : 0;
        chain.push_back(i < right ? good : (good + 1) % kVocab);
      }
      add_chain(r, chain);
      return Status();
    };
    FakeModel target(capabilities(), rows);
    ScriptedDrafter drafter(script);
    const FakeVocabulary vocabulary(kVocab);
    Engine engine(target, vocabulary, {&drafter});
    const RequestId id = *engine.add(request(prompt, 1.0f, 9, 40, 8));
    std::size_t said = 0;
    while (engine.busy()) {
      for (const Update& u : engine.step()) said += u.pieces.size();
      ASSERT_EQ(engine.check_integrity(), "");
      if (!engine.busy()) break;
      ASSERT_EQ(target.text(0).size(), prompt.size() + said - 1);
      for (std::size_t i = 0; i < target.text(0).size(); ++i)
        ASSERT_EQ(target.text(0)[i], whole[i]);
      ASSERT_EQ(drafter.last_accepted.size(), prompt.size() + said);
    }
    Result<Completion> got = engine.take(id);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->tokens, want);
    const double per_step = static_cast<double>(got->speculation.accepted) /
                            static_cast<double>(got->speculation.steps);
    EXPECT_NEAR(per_step, right, 1.0);
  }
}

TEST(Engine, ADraftModelOfAnyQualityGivesThePlainTextAndIsKeptInStep) {
  const std::uint64_t seed = testing::test_seed(200);
  double last_acceptance = 1.1;
  for (const float noise : {0.0f, 0.3f, 1.0f, 8.0f}) {
    std::int64_t drafted = 0, accepted = 0;
    for (std::uint64_t round = 0; round < 20; ++round) {
      const RowFunction rows = random_rows(kVocab, seed + round, 3.0f);
      const float temperature = round % 3 == 0 ? 0.0f : 1.0f;
      const std::vector<Token> want = reference(rows, {1, 2, 3}, temperature, seed, 40);
      FakeModel target(capabilities(), rows);
      FakeModel draft(capabilities(), noisy_rows(rows, seed, noise));
      DraftModelDrafter drafter(draft, kVocab, {});
      const FakeVocabulary vocabulary(kVocab);
      Engine engine(target, vocabulary, {&drafter});
      ASSERT_TRUE(engine.add(request({1, 2, 3}, temperature, seed, 40, 4)).ok());
      run_all(engine, &drafter);
      const Result<Completion> got = engine.take(1);
      ASSERT_EQ(got->tokens, want) << "noise " << noise << " round " << round;
      drafted += got->speculation.drafted;
      accepted += got->speculation.accepted;
      // No extra passes: each draft pass gives one drafted token, and the prompt rides along.
      ASSERT_LE(draft.evaluations(), got->speculation.drafted);
    }
    const double acceptance = static_cast<double>(accepted) / static_cast<double>(drafted);
    EXPECT_LT(acceptance, last_acceptance) << "noise " << noise;
    if (noise == 0.0f) {
      EXPECT_EQ(accepted, drafted);
    }
    last_acceptance = acceptance;
  }
}

TEST(Engine, ThreeSequencesComeAndGoAndEachEqualsItsSoloRun) {
  const std::uint64_t seed = testing::test_seed(300);
  const RowFunction rows = random_rows(kVocab, seed, 3.0f);
  FakeModel target(capabilities(), rows);
  FakeModel draft(capabilities(), noisy_rows(rows, seed, 0.7f));
  DraftModelDrafter drafter(draft, kVocab, {});
  ScriptedDrafter tree(scripts({})[4].second);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {&drafter, &tree});
  std::vector<std::pair<RequestId, std::vector<Token>>> wanted;
  std::uint64_t next = 0;
  while (next < 40 || engine.busy()) {
    while (next < 40) {
      std::vector<Token> prompt;
      const std::size_t n = 1 + noise_bits(noise_key(seed, next), 0) % 40;
      for (std::size_t i = 0; i < n; ++i) {
        prompt.push_back(static_cast<Token>(
            noise_bits(noise_key(seed, next), 9 + static_cast<std::uint32_t>(i)) % kVocab));
      }
      const std::size_t length = 1 + noise_bits(noise_key(seed, next), 1) % 20;
      const std::int32_t width = 1 + static_cast<std::int32_t>(next % 9);
      const Result<RequestId> id =
          engine.add(request(prompt, next % 2 == 0 ? 0.0f : 1.0f, seed + next,
                             static_cast<std::int32_t>(length), width));
      if (!id.ok()) break;
      wanted.push_back(
          {*id, reference(rows, prompt, next % 2 == 0 ? 0.0f : 1.0f, seed + next, length)});
      ++next;
    }
    engine.step();
    ASSERT_EQ(engine.check_integrity(), "");
    ASSERT_EQ(drafter.check_integrity(), "");
  }
  for (const auto& [id, want] : wanted) {
    const Result<Completion> got = engine.take(id);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->tokens, want) << "request " << id;
  }
}

TEST(Engine, EveryTokenOfThePromptIsCountedAsEvaluatedOnce) {
  for (const std::size_t n : {1U, 2U, 7U, 8U, 9U, 20U}) {
    FakeModel model({.n_vocab = 6, .n_ctx = 64, .n_batch = 8, .n_sequences = 1, .max_width = 4},
                    testing::random_rows(6, 1, 2.0f));
    const testing::FakeVocabulary vocabulary(6);
    Engine engine(model, vocabulary, {});
    Request request;
    request.prompt.assign(n, 2);
    request.sampler = std::make_unique<testing::FakeSampler>(1.0f);
    request.max_tokens = 3;
    const Result<RequestId> id = engine.add(std::move(request));
    ASSERT_TRUE(id.ok());
    while (engine.busy()) engine.step();
    EXPECT_EQ(engine.take(*id)->timings.prompt_tokens_evaluated, static_cast<std::int64_t>(n));
  }
}

}  // namespace
}  // namespace outrider
