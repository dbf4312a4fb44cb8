// Watchdog: ends the test program when it makes no progress.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace outrider::testing {

class Watchdog {
 public:
  // `progress` counts what is done; when it has not changed for `patience`, the process is aborted.
  Watchdog(const std::atomic<int>& progress, std::chrono::seconds patience)
      : thread_([this, &progress, patience] {
          std::unique_lock<std::mutex> lock(mutex_);
          for (int last = -1; !stop_;) {
            const int now = progress.load();
            if (now == last) {
              std::fprintf(stderr, "no progress since %d requests\n", now);
              std::abort();
            }
            last = now;
            changed_.wait_for(lock, patience, [this] { return stop_; });
          }
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace outrider::testing
