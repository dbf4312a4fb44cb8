// eventually(): waits for what nothing tells of: another process, a socket, a number that code
// under test counts. Where there is something to wait on (a condition variable,
// testing/step_gate.h, testing/pace.h), that is used instead. The only sleep of the tests' C++ code
// is here.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace outrider::testing {

// Looks every millisecond until `done` is true. False: it was not within a minute, which is longer
// than any machine needs for what tests wait for.
[[nodiscard]] inline bool eventually(const std::function<bool()>& done) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::minutes(1);
  for (;;) {
    const bool last = Clock::now() >= end;  // before the look: one of them comes after the end
    if (done()) return true;
    if (last) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace outrider::testing
