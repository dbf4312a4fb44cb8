// Work of several threads at once, and what happens where there are not so many. That the time is
// right is not tested: no test asserts one.
#include "machine/fastest_run.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace outrider {
namespace {

constexpr std::int32_t kThreads = 5;

TEST(FastestRun, EveryThreadWorksOnceInEachRun) {
  std::array<std::atomic<int>, kThreads> calls{};
  const Result<double> ms =
      fastest_run(kThreads, 3, [&](std::int32_t t) { ++calls[static_cast<std::size_t>(t)]; });
  ASSERT_TRUE(ms.ok()) << ms.status().message();
  EXPECT_GE(*ms, 0.0);
  for (const std::atomic<int>& n : calls) EXPECT_EQ(n.load(), 3);
}

// Threads that wait for those which were never made waited for ever, and so did who joined them.
TEST(FastestRun, WhereThreadsRunOutItEndsWithAnErrorAndNothingWasDone) {
  for (int there = 0; there < kThreads; ++there) {
    int made = 0;
    std::atomic<int> worked = 0;
    const ThreadMaker make = [&](std::function<void()> body) {
      if (made == there) {
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      }
      ++made;
      return std::jthread(std::move(body));
    };
    const Result<double> ms = fastest_run(
        kThreads, 2, [&](std::int32_t) { ++worked; }, make);
    ASSERT_FALSE(ms.ok());
    EXPECT_EQ(ms.status().code(), StatusCode::kResourceExhausted);
    EXPECT_NE(ms.status().message().find(std::to_string(there) + " of 5 threads"),
              std::string::npos)
        << ms.status().message();
    EXPECT_EQ(worked.load(), 0);
  }
}

TEST(FastestRun, ThreadsThatRunOutInALaterRunAreAnErrorToo) {
  int made = 0;
  std::atomic<int> worked = 0;
  const ThreadMaker make = [&](std::function<void()> body) {
    if (made == kThreads + 1) throw std::bad_alloc();
    ++made;
    return std::jthread(std::move(body));
  };
  EXPECT_FALSE(fastest_run(
                   kThreads, 2, [&](std::int32_t) { ++worked; }, make)
                   .ok());
  EXPECT_EQ(worked.load(), kThreads) << "of the first run";
}

}  // namespace
}  // namespace outrider
