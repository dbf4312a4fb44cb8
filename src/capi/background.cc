#include "capi/background.h"

#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace outrider::capi {
namespace {

// One thread at a time, which ends when there is nothing left. Nothing here allocates but the
// thread itself, so that an instance is never lost.
class Background {
 public:
  // For the end of the process.
  void finish() {
    std::thread last;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      last.swap(thread_);
    }
    if (last.joinable()) last.join();
    drain();
  }

  void add(std::unique_ptr<Instance> instance) {
    const std::lock_guard<std::mutex> lock(mutex_);
    instance->next = first_;
    first_ = instance.release();
    if (running_) return;
    try {
      if (thread_.joinable()) thread_.join();  // it has ended, or is about to without this mutex
      thread_ = std::thread([this] { run(); });
      running_ = true;
    } catch (const std::system_error&) {  // no thread now
    } catch (const std::bad_alloc&) {
    }
  }

  // Ends what is there, on this thread.
  void drain() {
    for (;;) {
      std::unique_ptr<Instance> instance;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        instance.reset(first_);
        if (first_ != nullptr) first_ = first_->next;
      }
      if (instance == nullptr) return;
    }
  }

 private:
  void run() {
    for (;;) {
      drain();
      const std::lock_guard<std::mutex> lock(mutex_);
      if (first_ != nullptr) continue;
      running_ = false;
      return;
    }
  }

  std::mutex mutex_;
  Instance* first_ = nullptr;
  bool running_ = false;
  std::thread thread_;
};

// Never destroyed, so that finish() can come at any time.
Background& background() {
  static Background& instance = *new Background();
  return instance;
}

}  // namespace

void end_in_background(std::unique_ptr<Instance> instance) noexcept {
  instance->close();
  background().add(std::move(instance));
}

void finish_background() noexcept { background().finish(); }

void end_waiting() noexcept { background().drain(); }

}  // namespace outrider::capi
