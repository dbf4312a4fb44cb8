// Pace: one thread keeps pace with what others do, by counts instead of times.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace outrider::testing {

// Any thread.
class Pace {
 public:
  // One more is done.
  void done() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++n_done_;
    changed_.notify_all();
  }
  // There will be no more.
  void end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  // Waits until that many are done. False: it has ended.
  bool wait_for(std::int64_t n_done) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || n_done_ >= n_done; });
    return !ended_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t n_done_ = 0;
  bool ended_ = false;
};

}  // namespace outrider::testing
