// Cancels, failures, edges and refusals.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <utility>

#include "testing/fake_engine.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

TEST(Engine, ACancelEndsOneRequestAndNoOther) {
  EngineOnFake on(1);
  const RequestId a = *on.engine.add(request({1}, 1.0f, 1, 20, 1));
  const RequestId b = *on.engine.add(request({2}, 1.0f, 2, 20, 1));
  for (int i = 0; i < 5; ++i) on.engine.step();
  int evaluations = 0;
  on.target.on_evaluate([&] {
    if (evaluations++ == 0) on.engine.cancel(a);  // in the middle of the target's pass
  });
  const std::vector<Update> interrupted = on.engine.step();
  EXPECT_TRUE(interrupted.empty());
  EXPECT_EQ(on.engine.check_integrity(), "");
  const std::vector<Update> next = on.engine.step();
  ASSERT_EQ(next.size(), 2U);
  run_all(on.engine);
  const Result<Completion> cancelled_one = on.engine.take(a);
  EXPECT_EQ(cancelled_one->finish, FinishReason::kCancelled);
  EXPECT_EQ(cancelled_one->tokens, reference(on.rows, {1}, 1.0f, 1, 5));
  EXPECT_EQ(on.engine.take(b)->tokens, reference(on.rows, {2}, 1.0f, 2, 20));
  on.engine.cancel(b);  // long gone: ignored
  EXPECT_TRUE(on.engine.step().empty());
}

TEST(Engine, AFailedBatchCostsTheDraftsFirst) {
  ScriptedDrafter drafter(scripts({})[5].second);
  EngineOnFake on(2, {&drafter});
  std::vector<std::int64_t> sizes;  // of the passes that succeeded, in tokens
  on.target.on_evaluated([&](std::int64_t n_tokens) { sizes.push_back(n_tokens); });
  ASSERT_TRUE(on.engine.add(request({1}, 1.0f, 1, 10, 4)).ok());
  on.engine.step();
  on.engine.step();
  ASSERT_EQ(sizes.size(), 2U);
  ASSERT_GT(sizes[1], 1) << "a step with a draft";
  on.target.fail_evaluate({resource_exhausted("no cells"), Status()});
  on.engine.step();
  ASSERT_EQ(sizes.size(), 3U);
  EXPECT_EQ(sizes[2], 1) << "tried again without the draft";
  run_all(on.engine);
  const Result<Completion> got = on.engine.take(1);
  EXPECT_EQ(got->finish, FinishReason::kLength);
  EXPECT_EQ(got->tokens, reference(on.rows, {1}, 1.0f, 1, 10));
}

TEST(Engine, AFaultCostsOneRequestAndTheOthersGoOn) {
  EngineOnFake on(3);
  const RequestId a = *on.engine.add(request({1}, 1.0f, 1, 10, 1));
  const RequestId b = *on.engine.add(request({2}, 1.0f, 2, 10, 1));
  on.engine.step();
  // The joint batch fails, then the first part alone; the second part alone passes.
  on.target.fail_evaluate({internal_error("broken"), internal_error("broken alone"), Status()});
  on.engine.step();
  ASSERT_EQ(on.engine.check_integrity(), "");
  run_all(on.engine);
  const Result<Completion> failed = on.engine.take(a);
  EXPECT_EQ(failed->finish, FinishReason::kError);
  EXPECT_EQ(failed->error.message(), "broken alone");
  EXPECT_EQ(failed->tokens.size(), 1U);
  EXPECT_EQ(on.engine.take(b)->tokens, reference(on.rows, {2}, 1.0f, 2, 10));
}

// The joint batch fails twice and has read the prompt's chunk; then the text fails alone.
TEST(Engine, AChunkThatIsInAlreadyIsNotTriedAlone) {
  Capabilities caps = capabilities();
  caps.rollback = Rollback::kSaved;
  EngineOnFake on(3, {}, caps);
  const RequestId a = *on.engine.add(request({1}, 1.0f, 1, 10, 1));
  on.engine.step();
  const std::vector<Token> prompt(40, 2);
  const RequestId b = *on.engine.add(request(prompt, 1.0f, 2, 10, 1));
  bool once = true;
  on.target.on_evaluate([&] {
    if (!std::exchange(once, false)) return;
    const EvalItem chunk{.seq = 1, .prefix = std::span(prompt).first(23)};
    EXPECT_TRUE(on.target.evaluate({&chunk, 1}).ok());
    EXPECT_TRUE(on.target.commit(1, {}).ok());
  });
  on.target.fail_evaluate({Status(), internal_error("broken"), internal_error("broken again"),
                           internal_error("broken alone")});
  on.engine.step();
  ASSERT_EQ(on.engine.check_integrity(), "");
  run_all(on.engine);
  EXPECT_EQ(on.engine.take(a)->error.message(), "broken alone");
  EXPECT_EQ(on.engine.take(b)->tokens, reference(on.rows, prompt, 1.0f, 2, 10));
}

TEST(Engine, AFailedCommitCostsThatRequestOnly) {
  EngineOnFake on(4);
  const RequestId a = *on.engine.add(request({1}, 1.0f, 1, 10, 1));
  const RequestId b = *on.engine.add(request({2}, 1.0f, 2, 10, 1));
  on.target.fail_commit({internal_error("lost")});
  run_all(on.engine);
  EXPECT_EQ(on.engine.take(a)->finish, FinishReason::kError);
  EXPECT_EQ(on.engine.take(b)->tokens, reference(on.rows, {2}, 1.0f, 2, 10));
}

// The text is whole: what could not be kept is only what a later text would begin with.
TEST(Engine, AFailedCommitOfATextsLastTokensIsNoFailureOfTheText) {
  EngineOnFake on(4);
  const RequestId a = *on.engine.add(request({1}, 1.0f, 1, 1, 1));
  on.target.fail_commit({internal_error("lost")});
  run_all(on.engine);
  const Result<Completion> got = on.engine.take(a);
  EXPECT_EQ(got->finish, FinishReason::kLength);
  EXPECT_TRUE(got->error.ok());
  EXPECT_EQ(got->tokens, reference(on.rows, {1}, 1.0f, 1, 1));
  for (const IdleTexts::Entry& entry : on.engine.idle().entries())
    EXPECT_TRUE(entry.text().empty());
}

TEST(Engine, AFailingDrafterIsDroppedAndTheResultSaysWhy) {
  const RowFunction rows = random_rows(kVocab, 4, 3.0f);
  FakeModel target(capabilities(), rows);
  ScriptedDrafter drafter([](DraftRequest&) { return internal_error("out of ideas"); });
  const FakeVocabulary vocabulary(kVocab);
  const Completion got = complete(target, vocabulary, {&drafter}, request({1}, 1.0f, 1, 10, 4));
  EXPECT_EQ(got.tokens, reference(rows, {1}, 1.0f, 1, 10));
  EXPECT_FALSE(got.speculation.enabled);
  EXPECT_EQ(got.speculation.reason, "scripted failed: out of ideas");
  EXPECT_EQ(got.speculation.drafters[0].calls, 1);
}

TEST(Engine, AFullDraftContextEndsDraftingNotTheText) {
  const RowFunction rows = random_rows(kVocab, 4, 3.0f);
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
  const RowFunction rows = random_rows(kVocab, 7, 3.0f);
  for (std::int32_t n_ctx = 4; n_ctx <= 36; ++n_ctx) {  // 1 to 33 places are left
    for (const std::int32_t width : {1, 4, 8}) {
      FakeModel target(capabilities(1, n_ctx), rows);
      FakeModel draft(capabilities(1, n_ctx), noisy_rows(rows, 1, 0.5f));
      DraftModelDrafter drafter(draft, kVocab, {});
      const FakeVocabulary vocabulary(kVocab);
      Engine engine(target, vocabulary, {&drafter});
      ASSERT_TRUE(engine.add(request({1, 2, 3}, 1.0f, 1, -1, width)).ok());
      run_all(engine, &drafter);
      const Result<Completion> got = engine.take(1);
      EXPECT_EQ(got->finish, FinishReason::kLength);
      EXPECT_EQ(got->tokens,
                reference(rows, {1, 2, 3}, 1.0f, 1, static_cast<std::size_t>(n_ctx - 3)));
    }
  }
}

TEST(Engine, StopStringsAndEndTokensAreExactAtEveryOffsetOfABlock) {
  const RowFunction rows = random_rows(kVocab, 8, 2.0f);
  const std::vector<Token> prompt = {1, 2};
  const std::vector<Token> said = reference(rows, prompt, 1.0f, 3, 30);
  std::vector<Token> whole = prompt;
  whole.insert(whole.end(), said.begin(), said.end());
  const FakeVocabulary letters(kVocab);
  for (std::size_t at = 0; at + 1 < said.size(); ++at) {
    const std::string stop =
        std::string(letters.piece(said[at])) + std::string(letters.piece(said[at + 1]));
    std::vector<Completion> results;
    for (const std::int32_t width : {1, 2, 5, 8, 16}) {
      FakeModel target(capabilities(), rows);
      ScriptedDrafter drafter(prophet(whole, 100, 0, kVocab));
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
      ScriptedDrafter drafter(prophet(whole, 100, 0, kVocab));
      const Completion got =
          complete(target, ending, {&drafter}, request(prompt, 1.0f, 3, 30, width));
      EXPECT_EQ(got.tokens, reference(rows, prompt, 1.0f, 3, 30, said[at]));
      EXPECT_EQ(got.finish, FinishReason::kStop);
    }
  }
}

TEST(Engine, WhatADrafterLeftOutAndWasRightAboutIsForegone) {
  const RowFunction rows = random_rows(kVocab, 5, 3.0f);
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
    add_chain(r, chain);
    return Status();
  });
  const FakeVocabulary vocabulary(kVocab);
  const Completion got = complete(target, vocabulary, {&drafter}, request({1}, 1.0f, 9, 12, 3));
  EXPECT_EQ(got.speculation.steps, 4);
  EXPECT_EQ(got.speculation.drafters[0].accepted, 8);
  EXPECT_EQ(got.speculation.drafters[0].foregone, 4);  // in each step the third was right, unsent
}

TEST(Engine, BadRequestsAreRefusedByName) {
  EngineOnFake on(5, {}, capabilities(1));
  const auto message = [&](Request r) { return on.engine.add(std::move(r)).status().message(); };
  EXPECT_NE(message(request({}, 1, 1, 5, 1)).find("prompt is empty"), std::string::npos);
  EXPECT_NE(message(request({kVocab}, 1, 1, 5, 1)).find("vocabulary of 12"), std::string::npos);
  EXPECT_NE(message(request(std::vector<Token>(64, 1), 1, 1, 5, 1)).find("64 tokens"),
            std::string::npos);
  EXPECT_NE(message(request({1}, 1, 1, 5, 0)).find("width is 0"), std::string::npos);
  EXPECT_NE(message(request({1}, 1, 1, -2, 1)).find("max_tokens is -2"), std::string::npos);
  Request stop = request({1}, 1, 1, 5, 1);
  stop.stop = {""};
  EXPECT_NE(message(std::move(stop)).find("stop string is empty"), std::string::npos);
  EXPECT_FALSE(on.engine.busy());
  ASSERT_TRUE(on.engine.add(request({1}, 1, 1, 5, 1)).ok());
  EXPECT_EQ(on.engine.add(request({1}, 1, 1, 5, 1)).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(Engine, ZeroTokensAreAnsweredWithNothing) {
  const RowFunction rows = random_rows(kVocab, 5, 3.0f);
  for (const std::vector<Token>& prompt : {std::vector<Token>{1}, std::vector<Token>{1, 2}}) {
    FakeModel target(capabilities(1), rows);
    const FakeVocabulary vocabulary(kVocab);
    const Completion got = complete(target, vocabulary, {}, request(prompt, 1, 1, 0, 1));
    EXPECT_EQ(got.finish, FinishReason::kLength);
    EXPECT_TRUE(got.tokens.empty());
    EXPECT_EQ(target.tokens_evaluated(), std::ssize(prompt) - 1);
  }
}

TEST(Engine, ZeroTokensOfAPromptThatCannotBeReadAreAnError) {
  const RowFunction rows = random_rows(kVocab, 5, 3.0f);
  FakeModel target(capabilities(1), rows);
  target.fail_evaluate({internal_error("on purpose"), internal_error("on purpose")});
  const FakeVocabulary vocabulary(kVocab);
  const Completion got = complete(target, vocabulary, {}, request({1, 2}, 1, 1, 0, 1));
  EXPECT_EQ(got.finish, FinishReason::kError);
  EXPECT_EQ(got.error.message(), "on purpose");
}

TEST(Engine, AModelThatCannotRollBackRunsPlainAndSaysWhy) {
  const RowFunction rows = random_rows(kVocab, 5, 3.0f);
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

TEST(Engine, ATargetThatKeepsLessReadsTheRestAgainAndGoesOnSpeculating) {
  const RowFunction rows = random_rows(kVocab, 6, 3.0f);
  for (const Rollback rollback : {Rollback::kSnapshot, Rollback::kSaved}) {
    const std::vector<Token> want = reference(rows, {1, 2}, 1.0f, 4, 30);
    std::vector<Token> whole = {1, 2};
    whole.insert(whole.end(), want.begin(), want.end());
    for (const auto& [name, script] : scripts(whole)) {
      SCOPED_TRACE(name);
      Capabilities caps = capabilities();
      caps.rollback = rollback;
      caps.max_leaves = 1;
      FakeModel target(caps, rows);
      ScriptedDrafter drafter(script);
      const FakeVocabulary vocabulary(kVocab);
      Engine engine(target, vocabulary, {&drafter});
      const RequestId a = *engine.add(request({1, 2}, 1.0f, 4, 30, 5));
      const RequestId b = *engine.add(request({3}, 1.0f, 5, 20, 3));
      run_all(engine);
      const Result<Completion> got = engine.take(a);
      EXPECT_EQ(got->tokens, want);
      EXPECT_EQ(got->timings.prompt_tokens_evaluated, 2) << "what is read again is no prompt";
      EXPECT_EQ(engine.take(b)->tokens, reference(rows, {3}, 1.0f, 5, 20));
      if (name == "wrong" || name == "half right") {
        EXPECT_GT(got->speculation.drafted, got->speculation.steps)
            << "the step after a rejection drafts too";
      }
    }
  }
}

TEST(Engine, AStateThatIsLostInAFailureEndsItsRequestAndIsReadAgainAfterAnInterrupt) {
  const RowFunction rows = random_rows(kVocab, 7, 3.0f);
  for (const bool interrupt : {false, true}) {
    Capabilities caps = capabilities();
    caps.rollback = Rollback::kSaved;
    caps.max_leaves = 1;
    FakeModel target(caps, rows);
    const FakeVocabulary vocabulary(kVocab);
    Engine engine(target, vocabulary, {});
    const RequestId a = *engine.add(request({1, 2, 3}, 1.0f, 1, 15, 1));
    const RequestId b = *engine.add(request({2}, 1.0f, 2, 15, 1));
    for (int i = 0; i < 4; ++i) engine.step();
    bool once = true;
    target.on_evaluate([&] {
      if (!once) return;
      once = false;
      EXPECT_TRUE(target.truncate(0, 0).ok());  // half a batch was in it
    });
    target.fail_evaluate({interrupt ? cancelled("on purpose") : internal_error("on purpose")});
    run_all(engine);
    const Result<Completion> lost = engine.take(a);
    if (interrupt) {
      EXPECT_EQ(lost->tokens, reference(rows, {1, 2, 3}, 1.0f, 1, 15));
    } else {
      EXPECT_EQ(lost->finish, FinishReason::kError);
      EXPECT_NE(lost->error.message().find("on purpose"), std::string::npos);
    }
    EXPECT_EQ(engine.take(b)->tokens, reference(rows, {2}, 1.0f, 2, 15));
  }
}

TEST(Engine, ATreeWithMoreLeavesThanTheTargetTakesLosesTheLeastLikely) {
  const RowFunction rows = random_rows(kVocab, 8, 3.0f);
  for (const std::int32_t max_leaves : {1, 2, 3, 8}) {
    Capabilities caps = capabilities();
    caps.max_leaves = max_leaves;
    FakeModel target(caps, rows);
    ScriptedDrafter drafter(scripts({})[4].second);
    const FakeVocabulary vocabulary(kVocab);
    const Completion got = complete(target, vocabulary, {&drafter}, request({1}, 1.0f, 3, 20, 16));
    EXPECT_EQ(got.tokens, reference(rows, {1}, 1.0f, 3, 20));
    EXPECT_GT(got.speculation.drafted, 20);
    EXPECT_EQ(target.evaluations(), got.speculation.steps) << "none was refused";
  }
}

// As when the process that it runs in dies in the middle of a pass: requests in the prompt and in
// the text alike end with the reason, within one step, and the engine tries no further.
TEST(Engine, AModelThatIsGoneEndsItsRequestsAtOnceAndNewOnesToo) {
  ScriptedDrafter drafter(scripts({})[5].second);
  EngineOnFake on(4, {&drafter});
  const RequestId running = *on.engine.add(request({1}, 1.0f, 1, 10, 4));
  const RequestId other = *on.engine.add(request({2}, 1.0f, 2, 10, 1));
  on.engine.step();
  const RequestId fresh = *on.engine.add(request({3, 4}, 1.0f, 3, 10, 4));
  const std::int64_t before = on.target.evaluations();
  on.target.on_evaluate([&] { on.target.die(internal_error("its process was killed")); });
  on.engine.step();
  EXPECT_FALSE(on.engine.busy());
  EXPECT_EQ(on.engine.check_integrity(), "");
  EXPECT_LE(on.target.evaluations() - before, 5) << "all, without drafts, and once for each";
  for (const RequestId id : {running, other, fresh}) {
    const Result<Completion> failed = on.engine.take(id);
    ASSERT_TRUE(failed.ok());
    EXPECT_EQ(failed->finish, FinishReason::kError);
    EXPECT_EQ(failed->error.code(), StatusCode::kInternal);
    EXPECT_EQ(failed->error.message(), "its process was killed");
  }
  const Result<RequestId> late = on.engine.add(request({1}, 1.0f, 1, 10, 1));
  ASSERT_TRUE(late.ok());
  on.engine.step();
  EXPECT_EQ(on.engine.take(*late)->error.message(), "its process was killed");
}

TEST(Engine, AModelThatDiesBetweenStepsEndsItsRequestsInTheNext) {
  EngineOnFake on(5);
  const RequestId id = *on.engine.add(request({1}, 1.0f, 1, 10, 1));
  on.engine.step();
  on.target.die(internal_error("its process was killed"));
  on.engine.step();
  EXPECT_FALSE(on.engine.busy());
  EXPECT_EQ(on.engine.take(id)->error.message(), "its process was killed");
}

}  // namespace
}  // namespace outrider
