#include "tools/call_pool.h"

#include <system_error>
#include <utility>

namespace outrider::tools {

CallPool::CallPool(std::size_t max_threads, std::function<void(const std::string&)> work)
    : max_threads_(max_threads), work_(std::move(work)) {
  threads_.reserve(max_threads_);
}

CallPool::~CallPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    finish_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CallPool::add(std::string text) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (idle_ <= texts_.size() && threads_.size() < max_threads_) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {
      if (threads_.empty()) {
        lock.unlock();
        return work_(text);
      }
    }
  }
  less_.wait(lock, [this] { return texts_.size() < kMaxWaiting; });
  texts_.push_back(std::move(text));
  more_.notify_one();
}

void CallPool::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    ++idle_;
    more_.wait(lock, [this] { return finish_ || !texts_.empty(); });
    --idle_;
    if (texts_.empty()) return;
    const std::string text = std::move(texts_.front());
    texts_.pop_front();
    less_.notify_one();
    lock.unlock();
    work_(text);
    lock.lock();
  }
}

}  // namespace outrider::tools
