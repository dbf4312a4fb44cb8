#include "serve/deadline_thread.h"

#include <condition_variable>
#include <new>

namespace outrider {

DeadlineThread::DeadlineThread(RuntimeShared& shared, Jobs& jobs)
    : shared_(shared), jobs_(jobs), thread_([this] { run(); }) {}

void DeadlineThread::run() {
  RuntimeShared::Lock lock(shared_.mutex);
  while (!shared_.stop) {
    const Job* const next = jobs_.next_deadline();
    if (next == nullptr) {
      shared_.deadline_set.wait(lock);
      continue;
    }
    const CompletionId id = next->id;
    const Job::Clock::time_point deadline = *next->deadline;
    if (shared_.deadline_set.wait_until(lock, deadline) == std::cv_status::no_timeout) continue;
    const JobPtr late = jobs_.find(id);
    if (late == nullptr) continue;
    try {
      jobs_.end(*late, EndedBy::kTimeout);
    } catch (const std::bad_alloc&) {  // then once more, at once: its deadline is over
    }
  }
}

}  // namespace outrider
