// Waiting for several completions at once. Each wait is longer than any test may take: one that
// does not end when it should is a test that does not end.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "testing/runtime_fixture.h"
#include "testing/step_gate.h"

namespace outrider {
namespace {

using testing::endless;
using RuntimeWait = testing::RuntimeTest;

constexpr std::int64_t kForEverMs = 1'000'000'000;

TEST_F(RuntimeWait, OneThatSaysSomethingEndsTheWaitForAll) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1});
  testing::StepGate gate(*runtime);
  const CompletionId runs = runtime->start(endless({1}, 1))->id;
  const CompletionId waits = runtime->start(endless({2}, 2))->id;
  const CompletionId both[] = {waits, runs};
  runtime->wait_any(both, 1);
  for (const CompletionId id : both) {
    const Result<PolledCompletion> polled = runtime->poll(id, 0);
    EXPECT_TRUE(polled.ok() && polled->tokens.empty() && !polled->finished) << "nothing is said";
  }
  gate.let(3);
  runtime->wait_any(both, kForEverMs);
  EXPECT_FALSE(runtime->poll(runs, 0)->tokens.empty());
  EXPECT_TRUE(runtime->poll(waits, 0)->tokens.empty());
  gate.open();
}

TEST_F(RuntimeWait, OneThatEndsEndsTheWaitForAll) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1});
  testing::StepGate gate(*runtime);
  const CompletionId runs = runtime->start(endless({1}, 1))->id;
  gate.wait_until_held();
  const CompletionId waits = runtime->start(endless({2}, 2))->id;
  std::thread canceller([&] { EXPECT_TRUE(runtime->cancel(waits).ok()); });
  runtime->wait_any(std::vector<CompletionId>{runs, waits}, kForEverMs);
  EXPECT_TRUE(runtime->poll(waits, 0)->finished);
  EXPECT_FALSE(runtime->poll(runs, 0)->finished);
  canceller.join();
  gate.open();
}

TEST_F(RuntimeWait, NobodyWaitsForOneThatIsUnknown) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1});
  testing::StepGate gate(*runtime);
  const CompletionId runs = runtime->start(endless({1}, 1))->id;
  runtime->wait_any(std::vector<CompletionId>{runs, runs + 1}, kForEverMs);
  EXPECT_FALSE(runtime->poll(runs, 0)->finished);
  gate.open();
}

TEST_F(RuntimeWait, TheRuntimesEndEndsTheWaitOfACallback) {
  std::shared_ptr<const CompletionResult> result;
  Status refused;
  std::atomic<bool> inside{false};
  {
    const std::unique_ptr<Runtime> runtime = make({.slots = 2});
    runtime->subscribe([&, at = runtime.get()](const RuntimeEvent& event) {
      if (!event.completion || inside.exchange(true)) return;
      inside.notify_all();
      const Result<std::shared_ptr<const CompletionResult>> ran = at->run(endless({2}, 2));
      if (ran.ok()) result = *ran;
      refused = at->start(endless({2}, 2)).status();
    });
    EXPECT_TRUE(runtime->start(endless({1}, 1)).ok());
    inside.wait(false);
  }
  EXPECT_EQ(refused.code(), StatusCode::kCancelled);
  if (result != nullptr) {  // null: the end came before its start
    EXPECT_EQ(result->ended_by, EndedBy::kShutdown);
  }
}

TEST_F(RuntimeWait, ShutDownEndsTheWait) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1});
  const CompletionId waits[] = {runtime->start(endless({1}, 1))->id,
                                runtime->start(endless({2}, 2))->id};
  std::thread waiter([&] {
    for (const CompletionId id : waits) {
      PolledCompletion polled;
      while (!polled.finished) {
        runtime->wait_any(std::span(&id, 1), kForEverMs);
        polled = runtime->poll(id, 0).value();
      }
      EXPECT_EQ(polled.result->ended_by, EndedBy::kShutdown);
    }
  });
  runtime->shut_down();
  waiter.join();
}

}  // namespace
}  // namespace outrider
