// Time during which this process has run, for a wait that is looked at again and again. A clock
// goes on while the process is stopped (Ctrl-Z, `docker pause`, a debugger), and when it continues
// others seem to have been silent for all that time, who could say nothing or were not listened to.
//
// So what passes between two looks counts up to kMostBetweenLooks, and beyond that not at all:
// whoever looks every few milliseconds (remote/channel.h) misses a second only when stopped.
// Tested by running_time_test.cc.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace outrider {

class RunningTime {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;
  using Duration = Clock::duration;

  // 500 times the interval of the looks: a machine that is busy does not delay one for so long.
  static constexpr std::chrono::seconds kMostBetweenLooks{1};

  // `now`: another clock, for tests.
  explicit RunningTime(Now now = Clock::now) : now_(std::move(now)), last_(now_()) {}

  // Since it was made.
  Duration look() {
    const Clock::time_point now = now_();
    passed_ += std::min<Duration>(now - last_, kMostBetweenLooks);
    last_ = now;
    return passed_;
  }

 private:
  Now now_;
  Clock::time_point last_;
  Duration passed_{0};
};

}  // namespace outrider
