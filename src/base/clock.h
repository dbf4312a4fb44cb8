// Monotonic time for statistics.
#pragma once

#include <chrono>
#include <ctime>
#include <functional>

namespace outrider {

// Milliseconds since some moment, never falling. Tests give made-up ones where time decides.
using NowMs = std::function<double()>;

inline double steady_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// What the calling thread has computed so far, in milliseconds: time that others have its core does
// not count. Where the system does not say, steady_ms().
inline double thread_ms() {
#if defined(CLOCK_THREAD_CPUTIME_ID)
  timespec now = {};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0) {
    return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
  }
#endif
  return steady_ms();
}

// Measures time. Any thread may have its own.
class Stopwatch {
 public:
  Stopwatch() : start_(steady_ms()) {}
  // On a clock that outlives this; null: the machine's.
  explicit Stopwatch(const NowMs* clock) : clock_(clock), start_(now()) {}

  // Milliseconds since construction or the last restart().
  double elapsed_ms() const { return now() - start_; }

  // Milliseconds since construction or the last restart(), and starts anew.
  double restart() {
    const double before = start_;
    start_ = now();
    return start_ - before;
  }

 private:
  double now() const { return clock_ != nullptr ? (*clock_)() : steady_ms(); }

  const NowMs* clock_ = nullptr;
  double start_;
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
