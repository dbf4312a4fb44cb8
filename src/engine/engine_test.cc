#include "engine/engine.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "dist/gumbel.h"
#include "draft/draft_model.h"
#include "testing/chi_square.h"
#include "testing/fake_drafter.h"
#include "testing/fake_model.h"

namespace outrider {
namespace {

using testing::FakeModel;
using testing::FakeSampler;
using testing::FakeVocabulary;
using testing::ScriptedDrafter;

constexpr std::int32_t kVocab = 12;

Capabilities capabilities(std::int32_t n_sequences = 3, std::int32_t n_ctx = 64) {
  return {.n_vocab = kVocab,
          .n_ctx = n_ctx,
          .n_batch = 24,
          .n_sequences = n_sequences,
          .rollback = Rollback::kAny,
          .max_leaves = 8,
          .max_width = 16};
}

Request request(std::vector<Token> prompt, float temperature, std::uint64_t seed,
                std::int32_t max_tokens, std::int32_t width) {
  Request r;
  r.prompt = std::move(prompt);
  r.target_sampler = std::make_unique<FakeSampler>(temperature);
  r.draft_sampler = std::make_unique<FakeSampler>(temperature);
  r.seed = seed;
  r.max_tokens = max_tokens;
  r.width = width;
  return r;
}

// Runs until nothing is running; the engine's integrity is checked after every step.
void run_all(Engine& engine, const DraftModelDrafter* drafter = nullptr) {
  for (int i = 0; engine.busy(); ++i) {
    ASSERT_LT(i, 2000) << "no progress";
    engine.step();
    ASSERT_EQ(engine.check_integrity(), "");
    if (drafter == nullptr) continue;
    ASSERT_EQ(drafter->check_integrity(), "");
  }
}

Completion complete(LanguageModel& target, const Vocabulary& vocabulary,
                    std::vector<Drafter*> drafters, Request r) {
  Engine engine(target, vocabulary, std::move(drafters));
  const Result<RequestId> id = engine.add(std::move(r));
  EXPECT_TRUE(id.ok()) << id.status().message();
  run_all(engine);
  Result<Completion> completion = engine.take(*id);
  EXPECT_TRUE(completion.ok());
  return std::move(completion).value();
}

// Plain decoding by the book: no engine, no trees, one row at a time.
std::vector<Token> reference(const testing::RowFunction& rows, std::vector<Token> text,
                             float temperature, std::uint64_t seed, std::size_t n,
                             Token end = kNoToken) {
  const std::size_t prompt = text.size();
  FakeSampler sampler(temperature);
  while (text.size() < prompt + n) {
    const std::vector<float> row = rows(text);
    const std::uint64_t position = text.size();
    text.push_back(perturbed_argmax(sampler.apply(row), noise_key(seed, position)));
    if (text.back() == end) break;
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt), text.end()};
}

// Drafters of every temper. Each must leave the text as it is.
std::vector<std::pair<std::string, testing::Script>> scripts(const std::vector<Token>& whole) {
  using testing::add_chain;
  return {
      {"right", testing::prophet(whole, 100, 0, kVocab)},
      {"wrong", testing::prophet(whole, 100, 1, kVocab)},
      {"half right", testing::prophet(whole, 100, 3, kVocab)},
      {"empty", [](DraftRequest&) { return Status(); }},
      {"random tree",
       [](DraftRequest& r) {
         for (std::uint32_t i = 0; i < 20; ++i) {
           const NoiseKey key = noise_key(r.text.size(), i);
           r.tree->add(static_cast<NodeId>(noise_bits(key, 0) % r.tree->size()),
                       static_cast<Token>(noise_bits(key, 1) % kVocab),
                       static_cast<float>(noise_uniform(key, 2)), r.mask);
         }
         return Status();
       }},
      {"too long",
       [](DraftRequest& r) {
         add_chain(r, std::vector<Token>(200, 3));
         return Status();
       }},
      {"out of range",
       [](DraftRequest& r) {
         add_chain(r, std::vector<Token>{2, 1 << 30, -7, kVocab, 3});
         r.tree->add(kRoot, -1, 0.9f, r.mask);
         return Status();
       }},
      {"failing", [](DraftRequest&) { return internal_error("on purpose"); }},
  };
}

TEST(Engine, EveryDrafterWidthAndTemperatureGivesThePlainText) {
  const std::uint64_t seed = testing::test_seed(100);
  for (std::uint64_t round = 0; round < 12; ++round) {
    const testing::RowFunction rows = testing::random_rows(kVocab, seed + round, 3.0f);
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
        }
      }
    }
  }
}

TEST(Engine, ARightDrafterIsAcceptedWhole) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 5, 3.0f);
  const std::vector<Token> prompt = {1};
  const std::vector<Token> want = reference(rows, prompt, 1.0f, 9, 40);
  std::vector<Token> whole = prompt;
  whole.insert(whole.end(), want.begin(), want.end());
  FakeModel target(capabilities(), rows);
  ScriptedDrafter drafter(testing::prophet(whole, 100, 0, kVocab));
  const FakeVocabulary vocabulary(kVocab);
  const Completion got = complete(target, vocabulary, {&drafter}, request(prompt, 1.0f, 9, 40, 4));
  EXPECT_EQ(got.tokens, want);
  EXPECT_EQ(got.speculation.steps, 10);
  EXPECT_EQ(got.speculation.drafted, 30);
  EXPECT_EQ(got.speculation.accepted, 30);
  EXPECT_EQ(target.tokens_evaluated(), 40);
}

TEST(Engine, EveryAcceptanceCountFromNoneToAllKeepsBothCachesInStep) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 6, 3.0f);
  const std::vector<Token> prompt = {1, 2};
  const std::vector<Token> want = reference(rows, prompt, 1.0f, 9, 40);
  std::vector<Token> whole = prompt;
  whole.insert(whole.end(), want.begin(), want.end());
  for (std::int32_t right = 0; right <= 7; ++right) {
    // `right` good tokens, then bad ones up to the width.
    const testing::Script script = [&](DraftRequest& r) {
      std::vector<Token> chain;
      for (std::int32_t i = 0; i < r.max_nodes; ++i) {
        const std::size_t at = r.text.size() + static_cast<std::size_t>(i);
        const Token good = at < whole.size() ? whole[at] : 0;
        chain.push_back(i < right ? good : (good + 1) % kVocab);
      }
      testing::add_chain(r, chain);
      return Status();
    };
    FakeModel target(capabilities(), rows);
    ScriptedDrafter drafter(script);
    const FakeVocabulary vocabulary(kVocab);
    Engine engine(target, vocabulary, {&drafter});
    ASSERT_TRUE(engine.add(request(prompt, 1.0f, 9, 40, 8)).ok());
    std::size_t said = 0;
    while (engine.busy()) {
      for (const Update& u : engine.step()) said += u.pieces.size();
      ASSERT_EQ(engine.check_integrity(), "");
      if (!engine.busy()) break;
      ASSERT_EQ(target.text(0).size(), prompt.size() + said - 1);
      for (std::size_t i = 0; i < target.text(0).size(); ++i) ASSERT_EQ(target.text(0)[i], whole[i]);
      ASSERT_EQ(drafter.last_accepted.size(), prompt.size() + said);
    }
    Result<Completion> got = engine.take(1);
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
      const testing::RowFunction rows = testing::random_rows(kVocab, seed + round, 3.0f);
      const float temperature = round % 3 == 0 ? 0.0f : 1.0f;
      const std::vector<Token> want = reference(rows, {1, 2, 3}, temperature, seed, 40);
      FakeModel target(capabilities(), rows);
      FakeModel draft(capabilities(), testing::noisy_rows(rows, seed, noise));
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
  const testing::RowFunction rows = testing::random_rows(kVocab, seed, 3.0f);
  FakeModel target(capabilities(), rows);
  FakeModel draft(capabilities(), testing::noisy_rows(rows, seed, 0.7f));
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
        prompt.push_back(static_cast<Token>(noise_bits(noise_key(seed, next), 9 + static_cast<std::uint32_t>(i)) % kVocab));
      }
      const std::size_t length = 1 + noise_bits(noise_key(seed, next), 1) % 20;
      const std::int32_t width = 1 + static_cast<std::int32_t>(next % 9);
      const Result<RequestId> id =
          engine.add(request(prompt, next % 2 == 0 ? 0.0f : 1.0f, seed + next, static_cast<std::int32_t>(length), width));
      if (!id.ok()) break;
      wanted.push_back({*id, reference(rows, prompt, next % 2 == 0 ? 0.0f : 1.0f, seed + next, length)});
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

TEST(Engine, ACancelEndsOneRequestAndNoOther) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 1, 3.0f);
  FakeModel target(capabilities(), rows);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {});
  const RequestId a = *engine.add(request({1}, 1.0f, 1, 20, 1));
  const RequestId b = *engine.add(request({2}, 1.0f, 2, 20, 1));
  for (int i = 0; i < 5; ++i) engine.step();
  int evaluations = 0;
  target.on_evaluate([&] {
    if (evaluations++ == 0) engine.cancel(a);  // in the middle of the target's pass
  });
  const std::vector<Update> interrupted = engine.step();
  EXPECT_TRUE(interrupted.empty());
  EXPECT_EQ(engine.check_integrity(), "");
  const std::vector<Update> next = engine.step();
  ASSERT_EQ(next.size(), 2U);
  run_all(engine);
  const Result<Completion> cancelled_one = engine.take(a);
  EXPECT_EQ(cancelled_one->finish, FinishReason::kCancelled);
  EXPECT_EQ(cancelled_one->tokens, reference(rows, {1}, 1.0f, 1, 5));
  EXPECT_EQ(engine.take(b)->tokens, reference(rows, {2}, 1.0f, 2, 20));
  engine.cancel(b);  // long gone: ignored
  EXPECT_TRUE(engine.step().empty());
}

TEST(Engine, AFailedBatchCostsTheDraftsFirst) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 2, 3.0f);
  FakeModel target(capabilities(), rows);
  ScriptedDrafter drafter(scripts({})[5].second);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {&drafter});
  ASSERT_TRUE(engine.add(request({1}, 1.0f, 1, 10, 4)).ok());
  engine.step();
  target.fail_evaluate({resource_exhausted("no cells"), Status()});
  engine.step();
  run_all(engine);
  const Result<Completion> got = engine.take(1);
  EXPECT_EQ(got->finish, FinishReason::kLength);
  EXPECT_EQ(got->tokens, reference(rows, {1}, 1.0f, 1, 10));
}

TEST(Engine, AFaultCostsOneRequestAndTheOthersGoOn) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 3, 3.0f);
  FakeModel target(capabilities(), rows);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {});
  const RequestId a = *engine.add(request({1}, 1.0f, 1, 10, 1));
  const RequestId b = *engine.add(request({2}, 1.0f, 2, 10, 1));
  engine.step();
  // The joint batch fails, then the first part alone; the second part alone passes.
  target.fail_evaluate({internal_error("broken"), internal_error("broken alone"), Status()});
  engine.step();
  ASSERT_EQ(engine.check_integrity(), "");
  run_all(engine);
  const Result<Completion> failed = engine.take(a);
  EXPECT_EQ(failed->finish, FinishReason::kError);
  EXPECT_EQ(failed->error.message(), "broken alone");
  EXPECT_EQ(failed->tokens.size(), 1U);
  EXPECT_EQ(engine.take(b)->tokens, reference(rows, {2}, 1.0f, 2, 10));
}

TEST(Engine, AFailedCommitCostsThatRequestOnly) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 4, 3.0f);
  FakeModel target(capabilities(), rows);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {});
  const RequestId a = *engine.add(request({1}, 1.0f, 1, 10, 1));
  const RequestId b = *engine.add(request({2}, 1.0f, 2, 10, 1));
  target.fail_commit({internal_error("lost")});
  run_all(engine);
  EXPECT_EQ(engine.take(a)->finish, FinishReason::kError);
  EXPECT_EQ(engine.take(b)->tokens, reference(rows, {2}, 1.0f, 2, 10));
}

TEST(Engine, AFailingDrafterIsDroppedAndTheResultSaysWhy) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 4, 3.0f);
  FakeModel target(capabilities(), rows);
  ScriptedDrafter drafter([](DraftRequest&) { return internal_error("out of ideas"); });
  const FakeVocabulary vocabulary(kVocab);
  const Completion got =
      complete(target, vocabulary, {&drafter}, request({1}, 1.0f, 1, 10, 4));
  EXPECT_EQ(got.tokens, reference(rows, {1}, 1.0f, 1, 10));
  EXPECT_FALSE(got.speculation.enabled);
  EXPECT_EQ(got.speculation.reason, "scripted failed: out of ideas");
  EXPECT_EQ(got.speculation.drafters[0].calls, 1);
}

TEST(Engine, AFullDraftContextEndsDraftingNotTheText) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 4, 3.0f);
  FakeModel target(capabilities(), rows);
  FakeModel draft(capabilities(3, /*n_ctx=*/10), rows);
  DraftModelDrafter drafter(draft, kVocab, {});
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {&drafter});
  ASSERT_TRUE(engine.add(request({1, 2}, 1.0f, 1, 40, 4)).ok());
  run_all(engine, &drafter);
  const Result<Completion> got = engine.take(1);
  EXPECT_EQ(got->tokens, reference(rows, {1, 2}, 1.0f, 1, 40));
  EXPECT_NE(got->speculation.reason.find("context of 10 tokens is full"), std::string::npos);
  EXPECT_GT(got->speculation.accepted, 0);
}

TEST(Engine, EveryRemainingContextEndsTheTextAtTheSameToken) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 7, 3.0f);
  for (std::int32_t n_ctx = 4; n_ctx <= 24; ++n_ctx) {
    for (const std::int32_t width : {1, 4, 8}) {
      FakeModel target(capabilities(1, n_ctx), rows);
      FakeModel draft(capabilities(1, n_ctx), testing::noisy_rows(rows, 1, 0.5f));
      DraftModelDrafter drafter(draft, kVocab, {});
      const FakeVocabulary vocabulary(kVocab);
      Engine engine(target, vocabulary, {&drafter});
      ASSERT_TRUE(engine.add(request({1, 2, 3}, 1.0f, 1, -1, width)).ok());
      run_all(engine, &drafter);
      const Result<Completion> got = engine.take(1);
      EXPECT_EQ(got->finish, FinishReason::kLength);
      EXPECT_EQ(got->tokens, reference(rows, {1, 2, 3}, 1.0f, 1, static_cast<std::size_t>(n_ctx - 3)));
    }
  }
}

TEST(Engine, StopStringsAndEndTokensAreExactAtEveryOffsetOfABlock) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 8, 2.0f);
  const std::vector<Token> prompt = {1, 2};
  const std::vector<Token> said = reference(rows, prompt, 1.0f, 3, 30);
  std::vector<Token> whole = prompt;
  whole.insert(whole.end(), said.begin(), said.end());
  const FakeVocabulary letters(kVocab);
  for (std::size_t at = 0; at + 1 < said.size(); ++at) {
    const std::string stop = std::string(letters.piece(said[at])) + std::string(letters.piece(said[at + 1]));
    std::vector<Completion> results;
    for (const std::int32_t width : {1, 2, 5, 8, 16}) {
      FakeModel target(capabilities(), rows);
      ScriptedDrafter drafter(testing::prophet(whole, 100, 0, kVocab));
      Request r = request(prompt, 1.0f, 3, 30, width);
      r.stop = {stop};
      results.push_back(complete(target, letters, {&drafter}, std::move(r)));
      EXPECT_EQ(results.back().finish, FinishReason::kStop);
      EXPECT_EQ(results.back().text, results.front().text);
      EXPECT_EQ(results.back().tokens, results.front().tokens);
      EXPECT_EQ(results.back().stop, stop);
    }
    // The same offset as an end token.
    const FakeVocabulary ending(kVocab, /*end=*/said[at]);
    for (const std::int32_t width : {1, 3, 16}) {
      FakeModel target(capabilities(), rows);
      ScriptedDrafter drafter(testing::prophet(whole, 100, 0, kVocab));
      const Completion got = complete(target, ending, {&drafter}, request(prompt, 1.0f, 3, 30, width));
      EXPECT_EQ(got.tokens, reference(rows, prompt, 1.0f, 3, 30, said[at]));
      EXPECT_EQ(got.finish, FinishReason::kStop);
    }
  }
}

TEST(Engine, WhatADrafterLeftOutAndWasRightAboutIsForegone) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 5, 3.0f);
  const std::vector<Token> want = reference(rows, {1}, 1.0f, 9, 12);
  std::vector<Token> whole = {1};
  whole.insert(whole.end(), want.begin(), want.end());
  FakeModel target(capabilities(), rows);
  // Always proposes three right tokens, however few fit: width 3 sends two of them.
  ScriptedDrafter drafter([&](DraftRequest& r) {
    std::vector<Token> chain;
    for (std::size_t at = r.text.size(); at < std::min(whole.size(), r.text.size() + 3); ++at) {
      chain.push_back(whole[at]);
    }
    testing::add_chain(r, chain);
    return Status();
  });
  const FakeVocabulary vocabulary(kVocab);
  const Completion got = complete(target, vocabulary, {&drafter}, request({1}, 1.0f, 9, 12, 3));
  EXPECT_EQ(got.speculation.steps, 4);
  EXPECT_EQ(got.speculation.drafters[0].accepted, 8);
  EXPECT_EQ(got.speculation.drafters[0].foregone, 4);  // in each step the third was right, unsent
}

TEST(Engine, BadRequestsAreRefusedByName) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 5, 3.0f);
  FakeModel target(capabilities(1), rows);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {});
  const auto message = [&](Request r) { return engine.add(std::move(r)).status().message(); };
  EXPECT_NE(message(request({}, 1, 1, 5, 1)).find("prompt is empty"), std::string::npos);
  EXPECT_NE(message(request({kVocab}, 1, 1, 5, 1)).find("vocabulary of 12"), std::string::npos);
  EXPECT_NE(message(request(std::vector<Token>(64, 1), 1, 1, 5, 1)).find("64 tokens"), std::string::npos);
  EXPECT_NE(message(request({1}, 1, 1, 5, 0)).find("--width is 0"), std::string::npos);
  EXPECT_NE(message(request({1}, 1, 1, -2, 1)).find("--max-tokens is -2"), std::string::npos);
  Request stop = request({1}, 1, 1, 5, 1);
  stop.stop = {""};
  EXPECT_NE(message(std::move(stop)).find("stop string is empty"), std::string::npos);
  EXPECT_FALSE(engine.busy());
  ASSERT_TRUE(engine.add(request({1}, 1, 1, 5, 1)).ok());
  EXPECT_EQ(engine.add(request({1}, 1, 1, 5, 1)).status().code(), StatusCode::kResourceExhausted);
}

TEST(Engine, ZeroTokensAreAnsweredWithNothing) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 5, 3.0f);
  FakeModel target(capabilities(1), rows);
  const FakeVocabulary vocabulary(kVocab);
  const Completion got = complete(target, vocabulary, {}, request({1, 2}, 1, 1, 0, 1));
  EXPECT_EQ(got.finish, FinishReason::kLength);
  EXPECT_TRUE(got.tokens.empty());
}

TEST(Engine, AModelThatCannotRollBackRunsPlainAndSaysWhy) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 5, 3.0f);
  Capabilities caps = capabilities(1);
  caps.rollback = Rollback::kNone;
  caps.rollback_reason = "a recurrent model cannot forget";
  FakeModel target(caps, rows);
  ScriptedDrafter drafter(scripts({})[5].second);
  const FakeVocabulary vocabulary(kVocab);
  const Completion got = complete(target, vocabulary, {&drafter}, request({1}, 1.0f, 1, 10, 4));
  EXPECT_EQ(got.tokens, reference(rows, {1}, 1.0f, 1, 10));
  EXPECT_FALSE(got.speculation.enabled);
  EXPECT_EQ(got.speculation.reason, "a recurrent model cannot forget");
}

}  // namespace
}  // namespace outrider
