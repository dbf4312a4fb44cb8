// What is kept between requests, what comes and goes between steps, and what happens when the
// context is full: the text stays that of plain decoding.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "engine/engine.h"
#include "testing/chi_square.h"
#include "testing/fake_engine.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

const EngineOptions kReuse = {.prompt_chunk = 8, .reuse_prefix = true};

Completion run(Engine& engine, Request r, const DraftModelDrafter* drafter = nullptr) {
  const Result<RequestId> id = engine.add(std::move(r));
  EXPECT_TRUE(id.ok()) << id.status().message();
  run_all(engine, drafter);
  return *engine.take(*id);
}

TEST(PrefixReuse, WhatAnEarlierTextBeganWithIsNotReadAgain) {
  const RowFunction rows = random_rows(kVocab, 1, 3.0f);
  FakeModel target(capabilities(), rows);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {}, kReuse);
  const std::vector<Token> prompt = {1, 2, 3, 4, 5, 6};
  const Completion first = run(engine, request(prompt, 1.0f, 5, 10, 1));
  EXPECT_EQ(first.cached_tokens, 0);
  EXPECT_EQ(first.timings.prompt_tokens_evaluated, 6);
  // The conversation goes on.
  std::vector<Token> longer = prompt;
  longer.insert(longer.end(), first.tokens.begin(), first.tokens.end());
  longer.insert(longer.end(), {7, 8});
  const std::int64_t before = target.tokens_evaluated();
  const Completion second = run(engine, request(longer, 1.0f, 6, 1, 1));
  EXPECT_EQ(second.tokens, reference(rows, longer, 1.0f, 6, 1));
  EXPECT_EQ(second.cached_tokens, 15);  // all but the last said token, which was never read
  EXPECT_EQ(second.timings.prompt_tokens_evaluated, 3);
  EXPECT_EQ(target.tokens_evaluated() - before, 3);
}

// Clients read what they are about to ask for beforehand, with max_tokens 0.
TEST(PrefixReuse, WithoutTokensThePromptIsReadAndKeptAndNothingIsSaid) {
  const RowFunction rows = random_rows(kVocab, 1, 3.0f);
  std::vector<Token> prompt(30);  // more than a batch
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<Token>(i * 5 % kVocab);
  FakeModel target(capabilities(2), rows);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {}, kReuse);
  const Completion read = run(engine, request(prompt, 1.0f, 5, 0, 1));
  EXPECT_EQ(read.finish, FinishReason::kLength);
  EXPECT_TRUE(read.tokens.empty());
  EXPECT_EQ(read.cached_tokens, 0);
  EXPECT_EQ(read.timings.prompt_tokens_evaluated, 29) << "all but what a first step reads";
  EXPECT_EQ(read.timings.first_token_ms, 0.0);
  EXPECT_EQ(target.tokens_evaluated(), 29);
  const Completion again = run(engine, request(prompt, 1.0f, 5, 0, 1));
  EXPECT_EQ(again.finish, FinishReason::kLength);
  EXPECT_EQ(again.cached_tokens, 29);
  EXPECT_EQ(again.timings.prompt_tokens_evaluated, 0);
  const Completion said = run(engine, request(prompt, 1.0f, 5, 4, 1));
  EXPECT_EQ(said.tokens, reference(rows, prompt, 1.0f, 5, 4));
  EXPECT_EQ(said.cached_tokens, 29);
  EXPECT_EQ(said.timings.prompt_tokens_evaluated, 1);
}

// Whatever was done with the models between two steps leaves no trace.
TEST(PrefixReuse, WhatIdleSequencesHoldIsForgottenWithAllThatWasDoneToThem) {
  const RowFunction rows = random_rows(kVocab, 1, 3.0f);
  FakeModel target(capabilities(2), rows);
  FakeModel draft(capabilities(2), noisy_rows(rows, 2, 0.5f));
  DraftModelDrafter drafter(draft, kVocab, {});
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {&drafter}, kReuse);
  const std::vector<Token> prompt = {1, 2, 3, 4};
  (void)run(engine, request(prompt, 1.0f, 5, 10, 4));
  engine.cancel(99);  // came too late for its request, and would interrupt the next evaluation
  engine.forget_idle();
  for (SeqId seq = 0; seq < 2; ++seq) {
    EXPECT_EQ(target.length(seq), 0);
    EXPECT_EQ(draft.length(seq), 0);
  }
  const TokenTree tree(5);
  for (SeqId seq = 0; seq < 2; ++seq) {
    const EvalItem item{.seq = seq, .prefix = prompt, .tree = &tree};
    ASSERT_TRUE(target.evaluate(std::span(&item, 1)).ok());
  }
  ASSERT_TRUE(target.commit(1, std::vector<NodeId>{kRoot}).ok());  // the other one stays tentative
  target.set_interrupt(nullptr);
  engine.forget_idle();
  EXPECT_EQ(engine.check_integrity(), "");
  const Completion after = run(engine, request(prompt, 1.0f, 5, 10, 4));
  EXPECT_EQ(after.tokens, reference(rows, prompt, 1.0f, 5, 10));
  EXPECT_EQ(after.cached_tokens, 0);
  EXPECT_EQ(engine.check_integrity(), "");
}

// Random requests that share beginnings, with cancels, stop strings and a draft model in between.
TEST(PrefixReuse, EveryTextIsThatOfASoloRun) {
  const std::uint64_t seed = test_seed(1);
  std::int64_t reused = 0;
  for (const Rollback rollback : {Rollback::kAny, Rollback::kSaved, Rollback::kSnapshot}) {
    Capabilities caps = capabilities(2);
    caps.rollback = rollback;
    if (rollback != Rollback::kAny) caps.max_leaves = 1;
    const RowFunction rows = random_rows(kVocab, seed, 3.0f);
    FakeModel target(caps, rows);
    FakeModel draft(capabilities(2), noisy_rows(rows, seed, 0.7f));
    DraftModelDrafter drafter(draft, kVocab, {});
    const FakeVocabulary vocabulary(kVocab);
    Engine engine(target, vocabulary, {&drafter}, kReuse);
    const NoiseKey key = noise_key(seed, 17);
    std::vector<std::vector<Token>> texts = {{1, 2, 3}};
    for (std::uint32_t i = 0; i < 300; ++i) {
      // A beginning of an earlier text and something new.
      const std::vector<Token>& old = texts[noise_bits(key, 10 * i) % texts.size()];
      std::vector<Token> prompt(
          old.begin(), old.begin() + static_cast<std::ptrdiff_t>(noise_bits(key, 10 * i + 1) %
                                                                 (old.size() + 1)));
      prompt.push_back(static_cast<Token>(noise_bits(key, 10 * i + 2) % kVocab));
      if (prompt.size() > 40) prompt.resize(40);
      Request r = request(prompt, 1.0f, i, 12, 1 + static_cast<std::int32_t>(i % 5));
      r.speculative = i % 3 != 0;
      if (i % 4 == 0) r.stop = {"abc", "f"};
      const Result<RequestId> id = engine.add(std::move(r));
      ASSERT_TRUE(id.ok());
      const std::uint32_t steps = noise_bits(key, 10 * i + 3) % 9;
      for (std::uint32_t n = 0; n < steps && engine.busy(); ++n) engine.step();
      if (i % 5 == 0) engine.cancel(*id);
      run_all(engine, &drafter);
      const Result<Completion> got = engine.take(*id);
      ASSERT_TRUE(got.ok());
      ASSERT_EQ(got->tokens, reference(rows, prompt, 1.0f, i, got->tokens.size()))
          << "seed " << seed << ", request " << i;
      reused += got->cached_tokens;
      prompt.insert(prompt.end(), got->tokens.begin(), got->tokens.end());
      texts.push_back(prompt);
    }
    EXPECT_GT(reused, 0);
  }
}

TEST(PrefixReuse, EndedTextsGiveWayWhenARunningOneNeedsTheirCells) {
  const RowFunction rows = random_rows(kVocab, 3, 3.0f);
  FakeModel target(capabilities(3), rows);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {}, kReuse);
  run(engine, request({1, 2, 3, 4}, 1.0f, 1, 20, 1));
  run(engine, request({9, 9, 9, 9}, 1.0f, 2, 20, 1));
  EXPECT_GT(target.length(0) + target.length(1), 40);
  target.set_total_cells(50, /*told=*/true);
  const std::vector<Token> prompt = {5, 6, 7, 8, 5, 6};
  const Completion got = run(engine, request(prompt, 1.0f, 3, 40, 1));
  EXPECT_EQ(got.tokens, reference(rows, prompt, 1.0f, 3, 40)) << got.error.message();
}

TEST(Drafters, ComeAndGoBetweenSteps) {
  const RowFunction rows = random_rows(kVocab, 4, 3.0f);
  FakeModel target(capabilities(), rows);
  const std::vector<Token> whole = [&] {
    std::vector<Token> text = {1, 2};
    const std::vector<Token> said = reference(rows, text, 1.0f, 5, 40);
    text.insert(text.end(), said.begin(), said.end());
    return text;
  }();
  ScriptedDrafter drafter(prophet(whole, 100, 0, kVocab));
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {});
  const RequestId before = *engine.add(request({1, 2}, 1.0f, 5, 30, 4));
  engine.step();
  ASSERT_TRUE(engine.attach(&drafter).ok());
  const RequestId with = *engine.add(request({1, 2}, 1.0f, 5, 30, 4));
  Request other = request({1, 2}, 1.0f, 5, 30, 4);
  other.drafters.chains = {{"somebody else"}};
  const RequestId chosen = *engine.add(std::move(other));
  for (int i = 0; i < 3; ++i) engine.step();
  engine.detach(&drafter, "it went away");
  EXPECT_EQ(drafter.ended, 3 + 1);  // all sequences, and the one that did not want it
  run_all(engine);
  const Completion a = *engine.take(before);
  const Completion b = *engine.take(with);
  const Completion c = *engine.take(chosen);
  const std::vector<Token> said(whole.begin() + 2, whole.begin() + 32);
  EXPECT_EQ(a.tokens, said);
  EXPECT_EQ(b.tokens, said);
  EXPECT_EQ(c.tokens, said);
  EXPECT_EQ(a.speculation.drafted, 0);
  EXPECT_EQ(c.speculation.drafted, 0);
  EXPECT_EQ(b.speculation.drafted, 9);
  EXPECT_EQ(b.speculation.accepted, 9);
  EXPECT_EQ(b.speculation.reason, "it went away");
  ASSERT_EQ(b.speculation.drafters.size(), 1U);
  EXPECT_EQ(b.speculation.drafters[0].name, "scripted");
  EXPECT_TRUE(engine.drafters()[0] == nullptr);
  std::vector<std::unique_ptr<ScriptedDrafter>> many;
  for (std::size_t i = 0; i < Engine::kMaxDrafters; ++i) {
    many.push_back(std::make_unique<ScriptedDrafter>(prophet(whole, 1, 0, kVocab)));
    ASSERT_TRUE(engine.attach(many.back().get()).ok());
  }
  EXPECT_EQ(engine.attach(&drafter).code(), StatusCode::kResourceExhausted);
  for (const std::unique_ptr<ScriptedDrafter>& one : many) engine.detach(one.get(), "");
}

// As defined: the text loses its middle, everything is read again, noise begins a new stream.
// A step that is filled up because that takes less time says no more than the text has room for:
// what follows a full context follows a shifted one.
TEST(ContextShift, FillersDoNotPassAFullContext) {
  const RowFunction rows = [](std::span<const Token> text) {
    std::vector<float> row(kVocab, 0.0f);
    row[text.size() == 24 ? 7 : 5] = 10.0f;
    return row;
  };
  for (const std::int32_t width : {1, kAutoWidth}) {
    FakeModel target(capabilities(1, 24), rows);
    const FakeVocabulary vocabulary(kVocab);
    ScriptedDrafter finds_nothing([](DraftRequest&) { return Status(); });
    EngineOptions options = kReuse;
    options.costs.points = {{1, 10.0}, {2, 5.0}, {4, 20.0}};
    Engine engine(target, vocabulary, {&finds_nothing}, options);
    Request r = request({1, 2, 3}, 0.0f, 1, 60, width);
    r.shift_keep = 0;
    const Completion got = run(engine, std::move(r), nullptr);
    EXPECT_GE(got.shifts, 2);
    EXPECT_EQ(got.tokens, std::vector<Token>(60, 5)) << "width " << width;
    EXPECT_EQ(got.speculation.steps < 60, width != 1) << "the steps were filled up";
    const SpeculationStats& s = got.speculation;
    EXPECT_EQ(s.drafted >= s.steps - 10, width != 1) << "all that was sent counts";
    EXPECT_LE(s.accepted, s.drafted);
    EXPECT_GE(s.accepted + s.steps, s.emitted);
    EXPECT_EQ(s.drafters.size(), width == 1 ? 0U : 1U);
    for (const DrafterStats& drafter : s.drafters) EXPECT_EQ(drafter.drafted, 0) << "of nobody";
  }
}

TEST(ContextShift, GoesOnAsAFreshTextOfWhatIsLeftWould) {
  const std::uint64_t seed = test_seed(7);
  const RowFunction rows = random_rows(kVocab, seed, 3.0f);
  for (const std::int32_t keep : {0, 2, 5, 100}) {
    std::vector<std::vector<Token>> results;
    for (const std::int32_t width : {1, 4}) {
      FakeModel target(capabilities(1, 24), rows);
      FakeModel draft(capabilities(1, 24), noisy_rows(rows, 2, 0.5f));
      DraftModelDrafter drafter(draft, kVocab, {});
      const FakeVocabulary vocabulary(kVocab);
      Engine engine(target, vocabulary, {&drafter}, kReuse);
      Request r = request({1, 2, 3, 4, 5}, 1.0f, seed, 90, width);
      r.shift_keep = keep;
      const Completion got = run(engine, std::move(r), &drafter);
      EXPECT_EQ(got.finish, FinishReason::kLength);
      ASSERT_EQ(got.tokens.size(), 90U);
      EXPECT_GE(got.shifts, 5);
      EXPECT_EQ(got.speculation.drafted > 0, width > 1);
      results.push_back(got.tokens);
    }
    EXPECT_EQ(results[0], results[1]) << "keep " << keep << ", seed " << seed;
    // Up to the first shift it is plain decoding; behind it, the text is what was left.
    EXPECT_EQ(std::vector<Token>(results[0].begin(), results[0].begin() + 19),
              reference(rows, {1, 2, 3, 4, 5}, 1.0f, seed, 19));
    std::vector<Token> text = {1, 2, 3, 4, 5};
    text.insert(text.end(), results[0].begin(), results[0].begin() + 19);
    const std::ptrdiff_t kept = std::min(keep, 20);
    text.erase(text.begin() + kept, text.begin() + kept + (24 - kept) / 2);
    FakeSampler sampler(1.0f);
    const std::vector<float> row = rows(text);
    const std::uint64_t noise = mix64(seed ^ mix64(1));
    EXPECT_EQ(results[0][19], perturbed_argmax(sampler.apply(row), noise_key(noise, text.size())));
  }
}

TEST(Schedule, ALongPromptDoesNotHoldUpTextsThatGoOn) {
  const RowFunction rows = random_rows(kVocab, 5, 3.0f);
  FakeModel target(capabilities(), rows);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {}, kReuse);  // chunks of 8
  const RequestId running = *engine.add(request({1}, 1.0f, 1, 30, 1));
  engine.step();
  const std::vector<Token> prompt(50, 2);
  const RequestId late = *engine.add(request(prompt, 1.0f, 2, 5, 1));
  for (int i = 0; i < 6; ++i) {
    const std::int64_t before = target.tokens_evaluated();
    const std::vector<Update> updates = engine.step();
    EXPECT_EQ(target.tokens_evaluated() - before, 9) << "one token and a chunk";
    ASSERT_EQ(updates.size(), 1U) << "the running text gets its token in every step";
    EXPECT_NEAR(engine.prompt_progress(late), 8.0 * (i + 1) / 50, 1e-9);
  }
  run_all(engine);
  EXPECT_EQ(engine.take(running)->tokens, reference(rows, {1}, 1.0f, 1, 30));
  EXPECT_EQ(engine.take(late)->tokens, reference(rows, prompt, 1.0f, 2, 5));
}

TEST(Cancels, HoweverManyTheOthersGetOn) {
  const RowFunction rows = random_rows(kVocab, 6, 3.0f);
  FakeModel target(capabilities(), rows);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {});
  const RequestId patient = *engine.add(request({1}, 1.0f, 1, 10, 1));
  target.on_evaluate([&] { engine.cancel(999); });  // in every pass
  for (int i = 0; i < 20; ++i) engine.step();
  EXPECT_FALSE(engine.busy());
  EXPECT_EQ(engine.take(patient)->tokens, reference(rows, {1}, 1.0f, 1, 10));
}

// A pass that is interrupted costs such a target the state of all its texts.
TEST(Cancels, WhereTextsWouldBeLostOthersPassesEnd) {
  const RowFunction rows = random_rows(kVocab, 6, 3.0f);
  Capabilities recurrent = capabilities();
  recurrent.rollback = Rollback::kSnapshot;
  for (const bool alone : {true, false}) {
    FakeModel target(recurrent, rows);
    const FakeVocabulary vocabulary(kVocab);
    Engine engine(target, vocabulary, {});
    const RequestId first = *engine.add(request({1}, 1.0f, 1, 10, 1));
    const RequestId second = alone ? 0 : *engine.add(request({2}, 1.0f, 2, 10, 1));
    bool cancelled = false;
    target.on_evaluate([&] {
      if (!cancelled) engine.cancel(alone ? first : second);
      cancelled = true;
    });
    const std::vector<Update> updates = engine.step();
    EXPECT_EQ(std::any_of(updates.begin(), updates.end(),
                          [&](const Update& update) {
                            return update.id == first && !update.pieces.empty();
                          }),
              !alone)
        << "its pass came to its end";
    run_all(engine);
    if (alone) continue;
    EXPECT_EQ(engine.take(first)->tokens, reference(rows, {1}, 1.0f, 1, 10));
    EXPECT_EQ(engine.take(second)->finish, FinishReason::kCancelled);
  }
}

TEST(Logprobs, BehindTheSamplerAreOfTheDistributionThatWasDrawnFrom) {
  const RowFunction rows = random_rows(kVocab, 8, 3.0f);
  const FakeVocabulary vocabulary(kVocab);
  for (const bool after : {false, true}) {
    FakeModel target(capabilities(), rows);
    Engine engine(target, vocabulary, {});
    Request r = request({1, 2}, 0.5f, 3, 6, 1);
    r.logprobs = 3;
    r.logprobs_after_sampler = after;
    ASSERT_TRUE(engine.add(std::move(r)).ok());
    std::vector<TokenLogprob> streamed;
    while (engine.busy()) {
      for (const Update& update : engine.step()) {
        EXPECT_EQ(update.logprobs.size(), update.pieces.size());
        streamed.insert(streamed.end(), update.logprobs.begin(), update.logprobs.end());
      }
    }
    const Completion got = *engine.take(1);
    ASSERT_EQ(got.logprobs.size(), 6U);
    ASSERT_EQ(streamed.size(), 6U);
    std::vector<Token> text = {1, 2};
    for (std::size_t i = 0; i < 6; ++i) {
      const std::vector<float> row = rows(text);
      const std::vector<double> p =
          probabilities({.logits = row, .tokens = {}, .scale = after ? 2.0f : 1.0f});
      EXPECT_NEAR(got.logprobs[i].chosen.logprob,
                  std::log(p[static_cast<std::size_t>(got.tokens[i])]), 1e-5);
      EXPECT_EQ(streamed[i].chosen.logprob, got.logprobs[i].chosen.logprob);
      EXPECT_EQ(streamed[i].chosen.id, got.tokens[i]);
      text.push_back(got.tokens[i]);
    }
  }
}

}  // namespace
}  // namespace outrider
