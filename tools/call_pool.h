// Threads that work on texts, at most so many at once, made as they are needed.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace outrider::tools {

class CallPool {
 public:
  // `work` is called for each text, on a thread of the pool; it must not throw.
  CallPool(std::size_t max_threads, std::function<void(const std::string&)> work);
  ~CallPool();  // waits until all is done
  CallPool(const CallPool&) = delete;
  CallPool& operator=(const CallPool&) = delete;

  // Waits while all threads are busy and kMaxWaiting texts wait, so that what comes in cannot pile
  // up for ever. Where no thread can be made at all, works on this one. One thread.
  static constexpr std::size_t kMaxWaiting = 1024;
  void add(std::string text);

 private:
  void run();

  const std::size_t max_threads_;
  const std::function<void(const std::string&)> work_;
  std::mutex mutex_;
  std::condition_variable more_;  // a text, or the end
  std::condition_variable less_;  // a text was taken
  std::deque<std::string> texts_;
  std::size_t idle_ = 0;
  bool finish_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace outrider::tools
