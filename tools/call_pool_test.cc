#include "tools/call_pool.h"

#include <atomic>
#include <set>

#include <gtest/gtest.h>

namespace outrider::tools {
namespace {

TEST(CallPool, WorksOnEveryTextOnce) {
  std::mutex mutex;
  std::multiset<std::string> done;
  std::multiset<std::string> given;
  {
    CallPool pool(4, [&](const std::string& text) {
      const std::lock_guard<std::mutex> lock(mutex);
      done.insert(text);
    });
    for (int i = 0; i < 1000; ++i) {
      given.insert(std::to_string(i));
      pool.add(std::to_string(i));
    }
  }
  EXPECT_EQ(done, given);
}

TEST(CallPool, OneThreadKeepsTheOrder) {
  std::string done;
  {
    CallPool pool(1, [&](const std::string& text) { done += text; });
    for (const char* text : {"a", "b", "c", "d"}) pool.add(text);
  }
  EXPECT_EQ(done, "abcd");
}

// Each waits for the other: with one thread only this would never end.
TEST(CallPool, TextsAreWorkedOnAtOnceButNotMoreThanAllowed) {
  std::atomic<int> here{0};
  std::atomic<int> most{0};
  {
    CallPool pool(2, [&](const std::string&) {
      const int now = ++here;
      if (now > most.load()) most.store(now);
      while (most.load() < 2) std::this_thread::yield();
      --here;
    });
    for (int i = 0; i < 100; ++i) pool.add("x");
  }
  EXPECT_EQ(most.load(), 2);
}

}  // namespace
}  // namespace outrider::tools
