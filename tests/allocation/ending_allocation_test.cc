// Memory that runs out where nobody can be told any more, or where it must be gone on all the same:
// at a runtime's end, where a target's process has died (the system ends one when memory is short),
// in the cancelling of a request, and in the middle of a message.
//
// This program has an operator new of its own (failing_new.h).
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/caught.h"
#include "remote/channel.h"
#include "testing/fake_engine.h"
#include "testing/runtime_fixture.h"
#include "testing/step_gate.h"
#include "tests/allocation/failing_new.h"

namespace outrider {
namespace {

using failing_new::failed;
using failing_new::left_here;
using testing::ask;
using testing::FakeModel;
using testing::model;
using testing::StepGate;
using EndingAllocation = testing::RuntimeTest;

constexpr std::int64_t kAllocations = 60;

// Longer than what a string holds without memory.
std::string long_reason() { return std::string(100, 'x'); }

TEST_F(EndingAllocation, LoadsThatStillWaitAreEndedWithoutMemory) {
  failed.store(0);
  for (std::int64_t n = 1; n <= kAllocations; ++n) {
    const std::unique_ptr<Runtime> runtime = make({}, "broken");
    ASSERT_TRUE(runtime->load(ModelRole::kDraft, model(long_reason())).ok());
    ASSERT_TRUE(runtime->attach({.drafter = "suffix", .path = long_reason()}).ok());
    runtime->subscribe([](const RuntimeEvent&) {});  // what is told takes memory
    left_here = n;
    runtime->shut_down();
    left_here = 0;
    const ModelStatus draft = runtime->status().draft;
    ASSERT_EQ(draft.state, ModelState::kFailed) << "allocation " << n;
    ASSERT_EQ(draft.error.code(), StatusCode::kCancelled) << "allocation " << n;
  }
  EXPECT_GT(failed.load(), 0) << "there must be allocations to fail";
}

TEST_F(EndingAllocation, ATargetThatDiesIsFoundOutAndItsClientAnswered) {
  failed.store(0);
  for (std::int64_t n = 1; n <= kAllocations; ++n) {
    const std::unique_ptr<Runtime> runtime = make({.slots = 1});
    FakeModel& lent = StepGate::fake_target(*runtime->target()).fake_model();
    const Status status = runtime->with_idle_target([&](LanguageModel&, const Engine&) {
      lent.die(internal_error(long_reason()));
      left_here = n;  // the decode thread's
    });
    ASSERT_EQ(status.code(), StatusCode::kInternal) << "allocation " << n;
    const ModelStatus target = runtime->status().target;
    ASSERT_EQ(target.state, ModelState::kFailed) << "allocation " << n;
    ASSERT_EQ(target.error.message(), long_reason()) << "allocation " << n;
    ASSERT_EQ(runtime->check_integrity(), "") << "allocation " << n;
  }
  EXPECT_GT(failed.load(), 0) << "there must be allocations to fail";
}

TEST_F(EndingAllocation, WhatRunsWhenAStepFailsEndsAlsoWithoutMemoryForTheReason) {
  failed.store(0);
  const std::unique_ptr<Runtime> runtime = make({.slots = 1});
  FakeModel& target = StepGate::fake_target(*runtime->target()).fake_model();
  for (std::int64_t n = 1; n <= kAllocations; ++n) {
    std::atomic<bool> throws{true};
    target.on_evaluate([&throws, n] {
      if (!throws.exchange(false)) return;
      const std::runtime_error error(long_reason());
      left_here = n;
      throw error;
    });
    const Result<std::shared_ptr<const CompletionResult>> ran = runtime->run(ask({1}, 1, 10));
    ASSERT_TRUE(ran.ok()) << "allocation " << n;
    ASSERT_EQ((*ran)->completion.finish, FinishReason::kError) << "allocation " << n;
    const Result<std::shared_ptr<const CompletionResult>> next = runtime->run(ask({1}, 1, 10));
    ASSERT_TRUE(next.ok()) << "allocation " << n;
    if ((*next)->completion.finish == FinishReason::kError) continue;  // its own lack of memory
    ASSERT_EQ((*next)->completion.tokens, alone({1}, 1, 10)) << "allocation " << n;
  }
  EXPECT_GT(failed.load(), 0) << "there must be allocations to fail";
}

TEST(EngineAllocation, ARunningRequestIsCancelledWithoutMemory) {
  testing::EngineOnFake on(6);
  std::vector<RequestId> ids;
  for (int round = 0; round < 2; ++round) {
    for (SeqId seq = 0; seq < on.target.capabilities().n_sequences; ++seq) {
      const Result<RequestId> id = on.engine.add(testing::request({1, 2, 3}, 1.0f, 5, 30, 4));
      ASSERT_TRUE(id.ok());
      ids.push_back(*id);
    }
    on.engine.step();
    for (const RequestId id : ids) {
      left_here = 1;
      EXPECT_NO_THROW(on.engine.cancel(id));
      left_here = 0;
    }
    testing::run_all(on.engine);
    for (const RequestId id : std::exchange(ids, {})) {
      const Result<Completion> ended = on.engine.take(id);
      ASSERT_TRUE(ended.ok());
      EXPECT_EQ(ended->finish, FinishReason::kCancelled);
    }
  }
}

TEST(CaughtAllocation, AnExceptionForWhoseWordsThereIsNoMemoryIsALackOfMemory) {
  const std::runtime_error error(long_reason());
  left_here = 1;
  const Status status = caught(error);
  left_here = 0;
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(caught(error).message(), long_reason()) << "the control";
  const std::string path = long_reason();
  for (std::int64_t n = 1; n <= 8; ++n) {  // a loading thread has nobody to throw to
    Status loading;
    left_here = n;
    EXPECT_NO_THROW(loading = caught_loading(error, path)) << "allocation " << n;
    left_here = 0;
    EXPECT_FALSE(loading.ok()) << "allocation " << n;
  }
}

// So that a call to a model in another process costs one request, and not the model.
TEST(ChannelAllocation, AMessageWithoutMemoryForItsBodyIsReceivedByTheNextCall) {
  Result<std::pair<FileDescriptor, FileDescriptor>> ends = Channel::make_pair();
  ASSERT_TRUE(ends.ok());
  Channel a(std::move(ends->first));
  Channel b(std::move(ends->second));
  ASSERT_TRUE(a.send(7, long_reason(), 3).ok());
  ASSERT_TRUE(a.send(8, "", 4).ok());
  left_here = 1;
  EXPECT_THROW((void)b.receive({}, 0), std::bad_alloc);
  left_here = 0;
  const Result<Message> first = b.receive({}, 0);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->kind, 7U);
  EXPECT_EQ(first->call, 3U);
  EXPECT_EQ(first->body, long_reason());
  const Result<Message> second = b.receive({}, 0);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(second->kind, 8U);
}

}  // namespace
}  // namespace outrider
