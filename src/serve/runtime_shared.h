// RuntimeShared: what all parts of a runtime have in common: its options, its one mutex, and what
// its threads wake each other with.
//
// The mutex is the only one of the runtime (the events have one of their own, which is taken last).
// It is held for moments: never while a model is opened or evaluated, while a station is freed, or
// while a callback runs. A function of a part that says REQUIRES: the mutex is called with it held;
// one that takes a Lock is called with it held and returns with it held, and lets go in between.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "serve/events.h"
#include "serve/not_kept.h"
#include "serve/runtime_options.h"

namespace outrider {

struct RuntimeShared {
  using Lock = std::unique_lock<std::mutex>;

  explicit RuntimeShared(const RuntimeOptions& o) : options(noting(o, not_kept)) {}

  const std::shared_ptr<NotKept> not_kept = std::make_shared<NotKept>();  // any thread
  const RuntimeOptions options;
  EventThread events;  // any thread, with the mutex or without

  std::mutex mutex;
  // All of them are waited for with the mutex.
  std::condition_variable decode_work;   // there is something for a decode thread
  std::condition_variable load_work;     // something for the loading thread
  std::condition_variable loaded;        // a load has come to an end
  std::condition_variable deadline_set;  // a request with a deadline has come, or one has ended
  bool stop = false;                     // guarded by the mutex; never goes back

  // Short enough to need no memory: it is said where nothing may be thrown.
  static Status is_shut_down() { return cancelled("shutting down"); }

  // Of a wait that a client asks for: 11 days at most, more would overflow the clock.
  static std::chrono::milliseconds wait_time(std::int64_t ms) {
    return std::chrono::milliseconds(std::min<std::int64_t>(ms, 1'000'000'000));
  }
};

}  // namespace outrider
