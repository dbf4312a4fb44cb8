// Monotonic time for statistics.
#pragma once

#include <chrono>

namespace outrider {

// Measures wall time on the monotonic clock. Any thread may have its own.
class Stopwatch {
 public:
  Stopwatch() : start_(Clock::now()) {}

  // Milliseconds since construction or the last restart().
  double elapsed_ms() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }

  // Milliseconds since construction or the last restart(), and starts anew.
  double restart() {
    const Clock::time_point now = Clock::now();
    const double ms = std::chrono::duration<double, std::milli>(now - start_).count();
    start_ = now;
    return ms;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_;
};

// Adds the time from construction to destruction to a sum of milliseconds.
class ScopedTimer {
 public:
  explicit ScopedTimer(double& sum_ms) : sum_ms_(sum_ms) {}
  ~ScopedTimer() { sum_ms_ += watch_.elapsed_ms(); }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

 private:
  double& sum_ms_;
  Stopwatch watch_;
};

}  // namespace outrider
