// Callbacks of two instances that subscribe on each other's, or have destroyed their own; forks
// while one runs.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "capi/boundary.h"
#include "capi/log.h"
#include "testing/eventually.h"
#include "testing/fake_loader.h"

namespace outrider::capi {
namespace {

// An instance, and a callback that ends the other one's events while the other one's callback runs.
struct Crossing {
  Instance* own = nullptr;
  Crossing* other = nullptr;
  std::atomic<bool> is_inside{false};
  std::atomic<int> result{-1};  // of subscribe()

  static void receive(void* user, const char* /*event*/) {
    Crossing& self = *static_cast<Crossing*>(user);
    if (self.is_inside.exchange(true)) return;  // an event before the other one has ended them
    while (!self.other->is_inside.load()) std::this_thread::yield();
    self.result.store(subscribe(self.other->own, nullptr, nullptr));
  }
};

void load_target(Instance* instance) {
  const char* const request = R"({"jsonrpc":"2.0","id":1,"method":"model.load",)"
                              R"("params":{"role":"target","path":"target","ctx":64}})";
  free_string(call(instance, request));
}

TEST(Subscribe, TwoCallbacksThatSubscribeOnEachOthersInstanceDoNotWaitForEachOther) {
  std::array<Crossing, 2> both;
  for (Crossing& one : both) {
    std::unique_ptr<testing::FakeLoader> loader = std::make_unique<testing::FakeLoader>();
    loader->add("target", {.seed = 1});
    one.own = create(nullptr, nullptr, std::move(loader));
    ASSERT_NE(one.own, nullptr);
  }
  both[0].other = &both[1];
  both[1].other = &both[0];
  for (Crossing& one : both) ASSERT_EQ(subscribe(one.own, &Crossing::receive, &one), 0);
  for (Crossing& one : both) load_target(one.own);
  for (const Crossing& one : both) {
    ASSERT_TRUE(testing::eventually([&one] { return one.result.load() == 0; }));
  }
  for (Crossing& one : both) destroy(one.own);
}

// What waits for a line's callback holds it up: the event's callback, which logs.
TEST(Subscribe, ALinesCallbackDoesNotWaitForAnEventsCallbackThatWaitsToLog) {
  struct Waiting {
    Instance* own = nullptr;
    std::atomic<bool> event{false};  // its callback runs
    std::atomic<bool> line{false};
    std::atomic<int> result{-1};
  } waiting;
  std::unique_ptr<testing::FakeLoader> loader = std::make_unique<testing::FakeLoader>();
  loader->add("target", {.seed = 1});
  waiting.own = create(nullptr, nullptr, std::move(loader));
  ASSERT_NE(waiting.own, nullptr);
  const EventFunction on_event = [](void* user, const char* /*event*/) {
    Waiting& self = *static_cast<Waiting*>(user);
    if (self.event.exchange(true)) return;
    while (!self.line.load()) std::this_thread::yield();
    log_line(LogLevel::kInfo, "of the event");
  };
  const LogFunction on_line = [](void* user, int /*level*/, const char* /*text*/) {
    Waiting& self = *static_cast<Waiting*>(user);
    if (self.line.load()) return;
    while (!self.event.load()) std::this_thread::yield();
    self.line.store(true);
    self.result.store(subscribe(self.own, nullptr, nullptr));
  };
  ASSERT_EQ(subscribe(waiting.own, on_event, &waiting), 0);
  set_log(on_line, &waiting);
  load_target(waiting.own);
  EXPECT_TRUE(testing::eventually([&waiting] { return waiting.result.load() == 0; }));
  set_log(nullptr, nullptr);
  destroy(waiting.own);
}

// Its callback destroys it, and then waits for `go`.
struct Destroying {
  std::atomic<Instance*> own{nullptr};
  std::atomic<bool>* go = nullptr;
  std::atomic<bool> is_destroyed{false};
  std::atomic<bool> has_left{false};

  static void receive(void* user, const char* /*event*/) {
    Destroying& self = *static_cast<Destroying*>(user);
    Instance* const own = self.own.exchange(nullptr);
    if (own == nullptr) return;
    destroy(own);
    self.is_destroyed.store(true);
    while (!self.go->load()) std::this_thread::yield();
    self.has_left.store(true);
  }
};

// One of the two is ended in the background at once, the other one waits for that.
TEST(Subscribe, CallbacksThatHaveDestroyedTheirInstancesHoldUpNoOther) {
  std::atomic<bool> go{false};
  std::array<Destroying, 2> both;
  for (Destroying& one : both) {
    std::unique_ptr<testing::FakeLoader> loader = std::make_unique<testing::FakeLoader>();
    loader->add("target", {.seed = 1});
    Instance* const own = create(nullptr, nullptr, std::move(loader));
    ASSERT_NE(own, nullptr);
    one.own.store(own);
    one.go = &go;
    ASSERT_EQ(subscribe(own, &Destroying::receive, &one), 0);
    load_target(own);
    ASSERT_TRUE(testing::eventually([&one] { return one.is_destroyed.load(); }));
  }
  Instance* const third = create(
      nullptr, nullptr, std::make_unique<testing::FakeLoader>());  // while both callbacks run
  EXPECT_NE(third, nullptr);
  destroy(third);
  go.store(true);
  for (const Destroying& one : both) {
    EXPECT_TRUE(testing::eventually([&one] { return one.has_left.load(); }));
  }
}

// The thread that gives out a line, and holds what that takes, is not in the child.
TEST(Subscribe, AForkedChildMayEndTheLogThatItWasForkedWith) {
  struct Waiting {
    std::atomic<bool> inside{false};
    std::atomic<bool> go{false};
  } waiting;
  const LogFunction on_line = [](void* user, int /*level*/, const char* /*text*/) {
    Waiting& self = *static_cast<Waiting*>(user);
    self.inside.store(true);
    while (!self.go.load()) std::this_thread::yield();
  };
  set_log(on_line, &waiting);
  std::thread logging([] { log_line(LogLevel::kInfo, "of the parent"); });
  while (!waiting.inside.load()) std::this_thread::yield();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    set_log(nullptr, nullptr);
    log_line(LogLevel::kInfo, "of the child");
    _exit(0);
  }
  int status = -1;
  const bool ended = testing::eventually([&] { return waitpid(child, &status, WNOHANG) == child; });
  EXPECT_TRUE(ended);
  if (!ended) kill(child, SIGKILL);
  EXPECT_EQ(status, 0);
  waiting.go.store(true);
  logging.join();
  set_log(nullptr, nullptr);
}

}  // namespace
}  // namespace outrider::capi
