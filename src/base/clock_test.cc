#include "base/clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace outrider {
namespace {

#if defined(CLOCK_THREAD_CPUTIME_ID)
TEST(ThreadMs, GrowsWhileTheThreadComputesAndNotWhileItSleeps) {
  const double begin = thread_ms();
  while (thread_ms() - begin < 5.0) {
  }
  const Stopwatch watch;
  const double before = thread_ms();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(thread_ms() - before, watch.elapsed_ms() / 2);
}

TEST(ThreadMs, IsTheCallingThreadsAlone) {
  double other = 0.0;
  const double begin = thread_ms();
  while (thread_ms() - begin < 50.0) {
  }
  std::thread([&other] { other = thread_ms(); }).join();
  EXPECT_LT(other, 25.0);
}
#endif

}  // namespace
}  // namespace outrider
