// A target that is lent to a client's own work.
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <thread>

#include "testing/runtime_fixture.h"
#include "testing/step_gate.h"

namespace outrider {
namespace {

using testing::ask;
using testing::model;
using testing::StepGate;
using RuntimeIdle = testing::RuntimeTest;

// Leaves tokens behind, decided ones and some tentative ones.
void use(LanguageModel& target) {
  const std::vector<Token> text = {3, 1, 4, 1};
  TokenTree tree(5);
  tree.add(kRoot, 6, 1.0f, 1);
  const EvalItem item{.seq = 1, .prefix = text, .tree = &tree};
  EXPECT_TRUE(target.evaluate(std::span(&item, 1)).ok());
  EXPECT_TRUE(target.commit(1, std::vector<NodeId>{kRoot}).ok());
  const EvalItem further{.seq = 0, .prefix = text, .tree = &tree};
  EXPECT_TRUE(target.evaluate(std::span(&further, 1)).ok());
}

TEST_F(RuntimeIdle, TheModelHoldsNothingBeforeAndNothingOfItIsUsedAfterwards) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 2});
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("draft")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  ASSERT_TRUE(runtime->run(ask({3, 1, 4, 1}, 7, 10)).ok());
  bool done = false;
  const Status status = runtime->with_idle_target([&](LanguageModel& target, const Engine& engine) {
    for (SeqId seq = 0; seq < 2; ++seq) EXPECT_EQ(target.length(seq), 0);
    Drafter* const draft = engine.drafters().front();
    ASSERT_NE(draft, nullptr);
    EXPECT_EQ(draft->name(), kDraftModelName);
    use(target);
    const auto interrupt = std::make_unique<std::atomic<bool>>(false);
    target.set_interrupt(interrupt.get());  // which is gone when this returns
    done = true;
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(done);
  const std::shared_ptr<const CompletionResult> after = *runtime->run(ask({3, 1, 4, 1}, 7, 10));
  EXPECT_EQ(after->completion.tokens, alone({3, 1, 4, 1}, 7, 10));
  EXPECT_EQ(after->completion.cached_tokens, 0);
  EXPECT_GT(after->completion.speculation.accepted, 0);
  EXPECT_EQ(runtime->check_integrity(), "");
}

TEST_F(RuntimeIdle, WhatRunsEndsFirstAndWhatWaitsBeginsAfterwards) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 2});
  StepGate gate(*runtime);
  const CompletionId before = runtime->start(ask({1, 2}, 3, 20))->id;
  gate.wait_until_held();
  std::optional<RuntimeStatus> during;
  CompletionId waiting = 0;
  std::thread client([&] {
    const Status status = runtime->with_idle_target([&](LanguageModel&, const Engine& engine) {
      EXPECT_EQ(engine.drafters().front(), nullptr);
      waiting = runtime->start(ask({2, 1}, 4, 20))->id;
      during = runtime->status();
    });
    EXPECT_TRUE(status.ok()) << status.message();
  });
  gate.open();
  client.join();
  ASSERT_TRUE(during);
  EXPECT_EQ(during->finished, 1);
  EXPECT_EQ(during->running, 0);
  EXPECT_EQ(during->queued, 1) << "there is a slot, but the target is lent";
  std::shared_ptr<const CompletionResult> a, b;
  while (!a) a = runtime->poll(before, 1000)->result;
  while (!b) b = runtime->poll(waiting, 1000)->result;
  EXPECT_EQ(a->completion.tokens, alone({1, 2}, 3, 20));
  EXPECT_EQ(b->completion.tokens, alone({2, 1}, 4, 20));
}

TEST_F(RuntimeIdle, SeveralClientsHaveItInTurnAndADraftThatWasLoadedIsThere) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 2});
  std::atomic<int> inside{0};
  std::atomic<int> done{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      if (i == 0) {
        for (int turn = 0; turn < 20; ++turn) {
          ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("draft")).ok());
          ASSERT_TRUE(runtime->wait_loaded(-1));
          const Status status = runtime->with_idle_target(
              [&](LanguageModel&, const Engine& e) { EXPECT_NE(e.drafters()[0], nullptr); });
          EXPECT_TRUE(status.ok());
          ASSERT_TRUE(runtime->unload(ModelRole::kDraft, false).ok());
        }
        return;
      }
      for (std::uint64_t turn = 0; turn < 20; ++turn) {
        const Status status = runtime->with_idle_target([&](LanguageModel& target, const Engine&) {
          EXPECT_EQ(++inside, 1);
          use(target);
          --inside;
          ++done;
        });
        EXPECT_TRUE(status.ok()) << status.message();
        const std::shared_ptr<const CompletionResult> said = *runtime->run(ask({1}, turn, 10));
        EXPECT_EQ(said->completion.tokens, alone({1}, turn, 10));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(done, 140);
  EXPECT_EQ(runtime->check_integrity(), "");
}

TEST_F(RuntimeIdle, WorkThatThrowsIsAnErrorAndCostsNobodyElseAnything) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 2});
  Status status = runtime->with_idle_target([](LanguageModel& target, const Engine&) {
    use(target);
    throw std::runtime_error("on purpose");
  });
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(), "on purpose");
  status = runtime->with_idle_target([](LanguageModel&, const Engine&) { throw std::bad_alloc(); });
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ((*runtime->run(ask({1}, 1, 10)))->completion.tokens, alone({1}, 1, 10));
  EXPECT_EQ(runtime->check_integrity(), "");
}

TEST_F(RuntimeIdle, WithoutATargetOrAfterTheEndItIsRefused) {
  const auto nothing = [](LanguageModel&, const Engine&) { ADD_FAILURE() << "there is no target"; };
  const std::unique_ptr<Runtime> runtime = make({}, "");
  EXPECT_EQ(runtime->with_idle_target(nothing).code(), StatusCode::kNotFound);
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  const std::shared_ptr<const Target> target = runtime->target();
  const Status lost = runtime->with_idle_target([&](LanguageModel& lent, const Engine&) {
    StepGate::fake_target(*target).die_in_next_step(internal_error("its process died"));
    const std::vector<Token> text = {1};
    const EvalItem item{.prefix = text};
    EXPECT_FALSE(lent.evaluate(std::span(&item, 1)).ok());
  });
  EXPECT_EQ(lost.message(), "its process died");
  EXPECT_EQ(runtime->status().target.state, ModelState::kFailed);
  EXPECT_EQ(runtime->with_idle_target(nothing).code(), StatusCode::kNotFound);
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  runtime->shut_down();
  EXPECT_EQ(runtime->with_idle_target(nothing).code(), StatusCode::kCancelled);
}

TEST_F(RuntimeIdle, WorkThatStillWaitsAtTheEndIsNotDone) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1});
  StepGate gate(*runtime);
  ASSERT_TRUE(runtime->start(ask({1}, 1, 1000)).ok());
  gate.wait_until_held();
  Status status;
  std::thread client(
      [&] { status = runtime->with_idle_target([](LanguageModel&, const Engine&) {}); });
  std::thread end([&] { runtime->shut_down(); });
  while (runtime->load(ModelRole::kDraft, model("draft")).ok()) std::this_thread::yield();
  gate.open();
  end.join();
  client.join();
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace outrider
