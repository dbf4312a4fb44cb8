// Callbacks of two instances that subscribe on each other's.
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

}  // namespace
}  // namespace outrider::capi
