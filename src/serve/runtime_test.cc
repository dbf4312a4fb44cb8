// Requests from start to result: the same tokens as alone, whatever happens around them.
#include "serve/runtime.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "testing/eventually.h"
#include "testing/runtime_fixture.h"
#include "testing/step_gate.h"

namespace outrider {
namespace {

using testing::ask;
using testing::endless;
using testing::model;
using testing::RuntimeTest;

TEST_F(RuntimeTest, ARequestGetsTheTextOfPlainDecodingAndItsTokensOneByOne) {
  const std::unique_ptr<Runtime> runtime = make();
  CompletionRequest asked = ask({1, 2, 3}, 7, 20);
  asked.prompt_texts = true;
  const Result<StartedCompletion> started = runtime->start(asked);
  ASSERT_TRUE(started.ok()) << started.status().message();
  EXPECT_EQ(started->prompt.n_tokens, 3);
  EXPECT_EQ(started->prompt.to_evaluate, "bcd");
  std::vector<Token> tokens;
  std::shared_ptr<const CompletionResult> result;
  while (!result) {
    const Result<PolledCompletion> polled = runtime->poll(started->id, 1000);
    ASSERT_TRUE(polled.ok());
    for (const SaidToken& said : polled->tokens) {
      tokens.push_back(said.id);
      EXPECT_TRUE(said.by == "target" || said.by == "suffix") << said.by;
    }
    result = polled->result;
    EXPECT_EQ(polled->finished, result != nullptr);
  }
  EXPECT_EQ(tokens, alone({1, 2, 3}, 7, 20));
  EXPECT_EQ(result->completion.tokens, tokens);
  EXPECT_EQ(result->completion.finish, FinishReason::kLength);
  EXPECT_EQ(result->model, "target");
  EXPECT_EQ(result->completion.speculation.reason, "") << "nobody asked for a draft model";
  EXPECT_EQ(runtime->poll(started->id, 0).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(runtime->check_integrity(), "");
}

TEST_F(RuntimeTest, ManyRequestsAtOnceGetWhatEachGetsAlone) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 3, .max_queue = 100});
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("draft")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  std::vector<CompletionId> ids;
  std::vector<std::vector<Token>> prompts;
  for (std::uint64_t i = 0; i < 40; ++i) {
    prompts.push_back({static_cast<Token>(i % 5), 2, static_cast<Token>(i % 3)});
    if (i % 4 == 0) prompts.back().resize(40, static_cast<Token>(i % 7));
    const Result<StartedCompletion> started = runtime->start(ask(prompts.back(), i, 20));
    ASSERT_TRUE(started.ok()) << started.status().message();
    ids.push_back(started->id);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::shared_ptr<const CompletionResult> result;
    while (!result) result = runtime->poll(ids[i], 1000)->result;
    EXPECT_EQ(result->completion.tokens, alone(prompts[i], i, 20)) << "request " << i;
    EXPECT_EQ(result->completion.speculation.reason, "");
    EXPECT_GT(result->completion.speculation.accepted, 0);
  }
  const RuntimeStatus status = runtime->status();
  EXPECT_EQ(status.started, 40);
  EXPECT_EQ(status.finished, 40);
  EXPECT_EQ(status.generated_tokens, 800);
  EXPECT_EQ(status.running + status.queued, 0);
  std::vector<std::string> attached;
  for (const DrafterStatus& drafter : status.drafters) {
    if (drafter.attached) attached.push_back(drafter.name);
  }
  EXPECT_EQ(attached,
            (std::vector<std::string>{"draft-model", "suffix", "ngram-cache", "recycle"}));

  // A prompt that begins as an earlier one: of those above, all may have been started before one
  // had ended.
  const Result<StartedCompletion> again = runtime->start(ask(prompts.back(), 1, 20));
  ASSERT_TRUE(again.ok()) << again.status().message();
  while (!runtime->poll(again->id, 1000)->result) {
  }
  EXPECT_GT(runtime->status().cached_tokens, 0);
}

TEST_F(RuntimeTest, TheQueueHasABoundAndKeepsTheOrderOfArrival) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1, .max_queue = 2});
  testing::StepGate gate(*runtime);
  std::vector<CompletionId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(runtime->start(ask({1}, 1, 10))->id);
  const Result<StartedCompletion> refused = runtime->start(ask({1}, 1, 10));
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  gate.open();
  while (!runtime->poll(ids[2], 1000)->finished) {
  }
  EXPECT_TRUE(runtime->poll(ids[0], 0)->finished);
  EXPECT_TRUE(runtime->poll(ids[1], 0)->finished);
}

TEST_F(RuntimeTest, CancelsAndTimeoutsEndARequestWhereverItIs) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1});
  testing::StepGate gate(*runtime);
  const CompletionId running = runtime->start(ask({1}, 1, -1))->id;
  gate.wait_until_held();
  const CompletionId waiting = runtime->start(ask({1}, 2, -1))->id;
  CompletionRequest hurried = ask({1}, 3, -1);
  hurried.timeout_ms = 1;
  const CompletionId late = runtime->start(hurried)->id;
  EXPECT_EQ(runtime->cancel(999).code(), StatusCode::kNotFound);
  ASSERT_TRUE(runtime->cancel(waiting).ok());
  const Result<PolledCompletion> ended = runtime->poll(waiting, 0);
  ASSERT_TRUE(ended->finished);
  EXPECT_EQ(ended->result->ended_by, EndedBy::kClient);
  EXPECT_TRUE(ended->result->completion.tokens.empty());
  std::shared_ptr<const CompletionResult> result;
  while (!result) result = runtime->poll(late, 1000)->result;
  EXPECT_EQ(result->ended_by, EndedBy::kTimeout);
  gate.let(1);
  while (runtime->poll(running, 1000)->tokens.empty()) {
  }
  ASSERT_TRUE(runtime->cancel(running).ok());
  gate.open();
  result.reset();
  while (!result) result = runtime->poll(running, 1000)->result;
  EXPECT_EQ(result->completion.finish, FinishReason::kCancelled);
  EXPECT_EQ(result->ended_by, EndedBy::kClient);
  EXPECT_EQ(runtime->check_integrity(), "");
}

TEST_F(RuntimeTest, ResultsThatNobodyFetchesAreForgotten) {
  const std::unique_ptr<Runtime> runtime = make({.retention_ms = 1});
  const CompletionId id = runtime->start(ask({1}, 1, 3))->id;
  while (runtime->status().finished == 0) std::this_thread::yield();
  while (runtime->cancel(id).ok()) std::this_thread::yield();
  EXPECT_EQ(runtime->poll(id, 0).status().code(), StatusCode::kNotFound);
}

TEST_F(RuntimeTest, AResultThatItsClientHoldsIsKeptHoweverLateItIsFetched) {
  const std::unique_ptr<Runtime> runtime = make({.retention_ms = 1});
  const StartedCompletion held = *runtime->start(ask({1}, 1, 3));
  while (runtime->status().finished == 0) std::this_thread::yield();
  // The next one ends later, and is forgotten: so was all that could be.
  const CompletionId id = runtime->start(ask({1}, 1, 3))->id;
  while (runtime->cancel(id).ok()) std::this_thread::yield();
  const Result<PolledCompletion> polled = runtime->poll(held.id, 0);
  ASSERT_TRUE(polled.ok()) << polled.status().message();
  EXPECT_TRUE(polled->finished);
}

TEST_F(RuntimeTest, AResultThatWasHeldIsForgottenOnceItIsLetGoThoughNothingElseHappens) {
  const std::unique_ptr<Runtime> runtime = make({.retention_ms = 1});
  StartedCompletion held = *runtime->start(ask({1}, 1, 3));
  while (runtime->status().finished == 0) std::this_thread::yield();
  EXPECT_TRUE(runtime->cancel(held.id).ok()) << "it is there";
  held.hold.reset();
  EXPECT_TRUE(testing::eventually([&] { return !runtime->cancel(held.id).ok(); }));
}

TEST_F(RuntimeTest, ACompletionThatNobodyPollsForEndsWhereThatIsWanted) {
  const std::unique_ptr<Runtime> server = make({.retention_ms = 1, .end_unpolled = true});
  const std::unique_ptr<Runtime> other = make({.retention_ms = 1});
  ASSERT_TRUE(other->start(endless({1}, 1)).ok());
  const StartedCompletion held = *server->start(endless({1}, 1));
  for (std::uint64_t seed = 2; seed < 5; ++seed) {
    ASSERT_TRUE(server->start(endless({1}, seed)).ok());
  }
  EXPECT_TRUE(testing::eventually([&] { return server->status().finished == 3; }));
  EXPECT_TRUE(testing::eventually([&] { return server->status().running == 1; }))
      << "whose client holds it";
  EXPECT_TRUE(testing::eventually([&] { return other->status().running == 1; }))
      << "its client may be told by events";
  EXPECT_FALSE(server->poll(held.id, 1000)->finished);
  EXPECT_TRUE(server->cancel(held.id).ok());
  EXPECT_EQ(server->check_integrity(), "");
}

// One that is given up while it waits for a slot never gets one.
TEST_F(RuntimeTest, ACompletionThatNobodyPollsForEndsInTheQueueToo) {
  const std::unique_ptr<Runtime> server =
      make({.slots = 1, .retention_ms = 1, .end_unpolled = true});
  const StartedCompletion held = *server->start(endless({1}, 1));
  ASSERT_TRUE(server->start(endless({1}, 2)).ok());
  EXPECT_TRUE(testing::eventually([&] {
    const RuntimeStatus status = server->status();
    return status.finished == 1 && status.running == 1 && status.queued == 0;
  }));
  EXPECT_TRUE(server->cancel(held.id).ok());
}

TEST_F(RuntimeTest, FullContextsShiftAndLongPromptsAreCutWhenAskedTo) {
  const std::unique_ptr<Runtime> runtime = make({}, "target", 32);
  std::vector<Token> prompt(50, 3);
  EXPECT_EQ(runtime->start(ask(prompt, 1, 5)).status().code(), StatusCode::kInvalidArgument);
  CompletionRequest request = ask(prompt, 1, 100);
  request.shift_keep = 2;
  const Result<std::shared_ptr<const CompletionResult>> result = runtime->run(request);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)->prompt.n_tokens_asked, 50);
  EXPECT_EQ((*result)->prompt.n_tokens, 20);  // 50 less two blocks of 15
  EXPECT_TRUE((*result)->prompt.truncated());
  EXPECT_EQ((*result)->completion.tokens.size(), 100U);
  EXPECT_TRUE((*result)->shifted);
}

TEST_F(RuntimeTest, EventsTellTheSameStoryAndCallbacksMayCallBackIn) {
  const std::unique_ptr<Runtime> runtime = make({}, "");
  std::mutex mutex;
  std::vector<Token> tokens;
  std::atomic<int> finished{0};
  std::atomic<int> models{0};
  runtime->subscribe([&](const RuntimeEvent& event) {
    if (event.model) ++models;
    if (!event.completion) return;
    const std::lock_guard<std::mutex> lock(mutex);
    for (const SaidToken& said : event.completion->tokens) tokens.push_back(said.id);
    if (event.completion->result) {
      ++finished;
      if (finished < 3) {
        EXPECT_TRUE(runtime->start(ask({1}, 7, 5)).ok());
      }
      EXPECT_EQ(runtime->check_integrity(), "");
    }
  });
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  ASSERT_TRUE(runtime->start(ask({1}, 7, 5)).ok());
  while (finished < 3) std::this_thread::yield();
  runtime->subscribe({});
  EXPECT_GE(models, 2);
  std::vector<Token> expected;
  for (int i = 0; i < 3; ++i) {
    for (const Token token : alone({1}, 7, 5)) expected.push_back(token);
  }
  EXPECT_EQ(tokens, expected);
}

TEST_F(RuntimeTest, ItEndsInEveryState) {
  for (const std::string target : {"", "slow", "target", "broken"}) {
    for (const std::string draft : {"", "slow draft", "draft"}) {
      Result<std::unique_ptr<Runtime>> runtime = Runtime::create({.slots = 2}, loader_);
      if (!target.empty()) {
        ASSERT_TRUE((*runtime)->load(ModelRole::kTarget, model(target)).ok());
      }
      if (!draft.empty()) {
        ASSERT_TRUE((*runtime)->load(ModelRole::kDraft, model(draft)).ok());
      }
      if (target != "slow" && draft != "slow draft") (*runtime)->wait_loaded(-1);
      if (target == "target") {
        while ((*runtime)->target() == nullptr) std::this_thread::yield();
        // Two run and one waits at the end; the first may have ended and not been fetched.
        ASSERT_TRUE((*runtime)->start(ask({1}, 1, -1)).ok());
        for (int i = 0; i < 3; ++i) ASSERT_TRUE((*runtime)->start(endless({1}, 1)).ok());
      }
      runtime->reset();
    }
  }
}

TEST_F(RuntimeTest, ADeadlineDoesNotWaitForAStepThatDoesNotReturn) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1});
  testing::StepGate gate(*runtime);
  const CompletionId running = runtime->start(ask({1}, 1, 3))->id;
  gate.wait_until_held();
  CompletionRequest hurried = ask({1}, 3, -1);
  hurried.timeout_ms = 10;
  const CompletionId waiting = runtime->start(hurried)->id;
  std::shared_ptr<const CompletionResult> result;
  while (!result) result = runtime->poll(waiting, 1000)->result;
  EXPECT_EQ(result->ended_by, EndedBy::kTimeout);
  EXPECT_FALSE(runtime->poll(running, 0)->finished) << "its first step has not returned";
  gate.open();
}

TEST_F(RuntimeTest, ASlowCallbackIsReplacedWhileEventsKeepComing) {
  const std::unique_ptr<Runtime> runtime = make();
  std::atomic<int> calls{0};
  std::atomic<bool> gone{false};
  std::atomic<bool> may_return{false};
  const auto slow = [&](const RuntimeEvent&) {
    EXPECT_FALSE(gone.load());
    ++calls;
    may_return.wait(false);
  };
  runtime->subscribe(slow);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(runtime->start(ask({1}, 1, 50)).ok());
  while (calls == 0) std::this_thread::yield();
  std::atomic<int> others{0};
  std::thread release([&] {
    may_return = true;
    may_return.notify_all();
  });
  runtime->subscribe([&](const RuntimeEvent&) { ++others; });
  gone = true;  // the first one is not called any more
  release.join();
  ASSERT_TRUE(runtime->run(ask({1}, 1, 5)).ok());
  while (others == 0) std::this_thread::yield();
}

TEST_F(RuntimeTest, ShutDownEndsWhatRunsAndTakesNothingMore) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1});
  const Result<StartedCompletion> running = runtime->start(endless({1}, 1));
  ASSERT_TRUE(running.ok());
  runtime->shut_down();
  runtime->shut_down();
  EXPECT_EQ(runtime->start(ask({1}, 1, 5)).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(runtime->load(ModelRole::kTarget, model("again")).code(), StatusCode::kCancelled);
  EXPECT_EQ(runtime->attach({.drafter = "suffix", .path = "store"}).code(), StatusCode::kCancelled);
  const Result<PolledCompletion> ended = runtime->poll(running->id, 60'000);
  ASSERT_TRUE(ended.ok());
  ASSERT_TRUE(ended->finished);
  EXPECT_EQ(ended->result->ended_by, EndedBy::kShutdown);
}

TEST_F(RuntimeTest, WhatShutDownCutsOffSaysWhatItCameTo) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1});
  const Result<StartedCompletion> running = runtime->start(endless({1}, 1));
  const Result<StartedCompletion> waiting = runtime->start(endless({1}, 1));
  ASSERT_TRUE(running.ok() && waiting.ok());
  std::size_t told = 0;
  while (told < 3) told += runtime->poll(running->id, 60'000)->tokens.size();
  runtime->shut_down();
  PolledCompletion ended = runtime->poll(running->id, 60'000).value();
  ASSERT_TRUE(ended.finished);
  const Completion& c = ended.result->completion;
  EXPECT_EQ(c.finish, FinishReason::kCancelled);
  EXPECT_EQ(c.tokens.size(), told + ended.tokens.size());
  EXPECT_GE(c.speculation.emitted, 3);
  EXPECT_GT(c.speculation.steps, 0);
  EXPECT_TRUE(c.speculation.enabled);
  EXPECT_GT(c.timings.predicted_ms, 0.0);
  ended = runtime->poll(waiting->id, 60'000).value();
  ASSERT_TRUE(ended.finished);
  EXPECT_EQ(ended.result->ended_by, EndedBy::kShutdown);
  EXPECT_EQ(ended.result->completion.tokens.size(), 0u) << "it never had a slot";
}

// A load that had not begun would otherwise be waited for for ever.
TEST_F(RuntimeTest, ShutDownEndsLoadsThatHaveNotBegun) {
  const std::unique_ptr<Runtime> runtime = make();
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("slow")).ok());
  while (loader_.loads() < 2) std::this_thread::yield();  // the loading thread is at it
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("draft")).ok());
  ASSERT_TRUE(runtime->attach({.drafter = "suffix", .path = "store"}).ok());
  EXPECT_FALSE(runtime->wait_loaded(0));
  runtime->shut_down();
  EXPECT_TRUE(runtime->wait_loaded(60'000));
  const RuntimeStatus status = runtime->status();
  EXPECT_EQ(status.target.error.code(), StatusCode::kCancelled);
  EXPECT_EQ(status.draft.error.code(), StatusCode::kCancelled);
  for (const DrafterStatus& drafter : status.drafters) {
    for (const DrafterFileStatus& file : drafter.files) {
      EXPECT_EQ(file.error.code(), StatusCode::kCancelled);
    }
  }
  EXPECT_EQ(runtime->check_integrity(), "");
}

TEST_F(RuntimeTest, OptionsOutOfRangeAreRefusedByName) {
  EXPECT_NE(Runtime::create({.slots = 0}, loader_).status().message().find("slots"),
            std::string::npos);
  EXPECT_NE(Runtime::create({.max_queue = -1}, loader_).status().message().find("max_queue"),
            std::string::npos);
  EXPECT_EQ(Runtime::create({.retention_ms = 0}, loader_).status().field(), "retention_ms")
      << "no result could ever be fetched";
  const std::unique_ptr<Runtime> runtime = make();
  CompletionRequest r = ask({1}, 1, 5);
  r.sampling.top_p = 2.0f;
  EXPECT_NE(runtime->start(r).status().message().find("top_p"), std::string::npos);
  r = ask({99}, 1, 5);
  EXPECT_EQ(runtime->start(r).status().code(), StatusCode::kInvalidArgument);
  r = ask({1}, 1, 5);
  r.messages.push_back({"user", "both"});
  EXPECT_EQ(runtime->start(r).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(runtime->load(ModelRole::kTarget, model("")).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(runtime->status().started, 0);
}

}  // namespace
}  // namespace outrider
