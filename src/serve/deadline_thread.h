// DeadlineThread: ends requests that have run out of time. A thread of its own, so that a step that
// does not return keeps nobody waiting.
//
// It sleeps until the first deadline of all open requests; whoever adds one with a deadline wakes
// it (RuntimeShared::deadline_set).
//
// Owns its thread, which runs from the constructor to join().
#pragma once

#include <thread>

#include "serve/jobs.h"
#include "serve/runtime_shared.h"

namespace outrider {

class DeadlineThread {
 public:
  // Both must outlive this. May throw std::system_error.
  DeadlineThread(RuntimeShared& shared, Jobs& jobs);

  // REQUIRES: RuntimeShared::stop, without the mutex
  void join() { thread_.join(); }

 private:
  void run();

  RuntimeShared& shared_;
  Jobs& jobs_;
  std::thread thread_;
};

}  // namespace outrider
