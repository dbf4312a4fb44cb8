// EventThread: hands events to a callback, one at a time, in order, from a thread of its own, so
// that a slow callback holds up nobody else. What it has not taken yet is joined, so that a
// callback that does not keep up gets fewer and larger events: between two of models and files at
// most one waits of each completion, with all its new tokens, and of a model's progress only the
// newest. An event without anything stands for one or more for which there was no memory.
//
// Tested by events_test.cc and tests/allocation/allocation_test.cc.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "serve/runtime_status.h"

namespace outrider {

// Any thread.
class EventThread {
 public:
  // May throw std::system_error when there can be no further thread.
  EventThread() : thread_([this] { run(); }) {}
  ~EventThread();  // gives out what waits, then joins. Not from the callback
  EventThread(const EventThread&) = delete;
  EventThread& operator=(const EventThread&) = delete;

  // See Runtime::subscribe.
  void subscribe(EventCallback callback, bool wait = true);

  void post(RuntimeEvent event);

  // Posts what `make` gives, which is called only when somebody listens. Without memory an event
  // without anything takes its place, before those that wait; the status and poll() say the same
  // as what was lost.
  template <typename Make>
  void tell(const Make& make) {
    if (!wanted()) return;
    try {
      post(make());
    } catch (const std::exception&) {
      lose();
    }
  }

 private:
  bool wanted() const;
  void lose();
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const EventCallback> callback_;  // null: nobody listens
  std::deque<RuntimeEvent> waiting_;
  bool lost_ = false;        // an event, which nobody has been told of
  std::uint64_t begun_ = 0;  // calls of callbacks, and those that have returned
  std::uint64_t ended_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace outrider
