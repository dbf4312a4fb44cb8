// IdleWork: work of clients that has a target to itself, done by the target's decode thread between
// two steps (Runtime::with_idle_target).
//
// A client queues its work and waits; while any is queued, the decode thread admits no request of
// the current target, so that those that run come to their end. Then it takes out the oldest and
// does it.
//
// REQUIRES throughout: the runtime's mutex.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>

#include "base/status.h"
#include "engine/engine.h"
#include "model/language_model.h"
#include "serve/runtime_shared.h"

namespace outrider {

class IdleWork {
 public:
  using Lock = RuntimeShared::Lock;
  using Work = std::function<void(LanguageModel& target, const Engine& engine)>;

  explicit IdleWork(RuntimeShared& shared) : shared_(shared) {}

  // A client: waits, without the mutex, until `work` is done, and returns what became of it.
  Status queue(const Work& work, Lock& lock);

  struct Entry {  // its client's
    const Work* work = nullptr;
    bool done = false;
    Status status;
  };

  // The decode thread of the current target.
  bool wanted() const { return !queue_.empty(); }
  // The oldest, which is that thread's from now on, until done(). REQUIRES: wanted()
  Entry& take();
  // It is done, or will not be.
  void done(Entry& entry, Status status);

  // At the runtime's end, when the decode threads are gone: none of it will be done. Waits until no
  // client waits any more.
  void end_everything(Lock& lock);

 private:
  RuntimeShared& shared_;
  std::deque<Entry*> queue_;
  int clients_ = 0;  // that wait in queue()
  std::condition_variable changed_;
};

}  // namespace outrider
