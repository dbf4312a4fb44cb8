// Jobs: all completions from start() until their result is handed out: those that wait, those that
// run, and those that are known to clients; and the counters over all of them.
//
// add() makes a job waiting, admit() running, finish() finished (serve/job.h); one that waits goes
// straight to finished when it is cancelled. fail() and end() go through finish().
//
// Invariants: a waiting or running job is known and has a station; a finished one has none; at most
// `slots` run on a station; started - finished counters = waiting + running.
//
// Any thread; REQUIRES throughout: the runtime's mutex. Clients call add(), poll(), wait_any(),
// cancel(); a thread for deadlines is in keep_time(); the decode threads call the rest, each for
// the jobs of its station. Nothing throws for want of memory but add(), admit(), give_out(),
// wait_any(), end_all_of(), and end() of a running job; of one job nothing has changed then.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "serve/drafter_notes.h"
#include "serve/job.h"
#include "serve/runtime_shared.h"

namespace outrider {

class Jobs {
 public:
  using Lock = RuntimeShared::Lock;
  using TimePoint = Job::Clock::time_point;

  Jobs(RuntimeShared& shared, DrafterNotes& drafters);

  // For `n` more (>= 1). kResourceExhausted when all slots and the queue are full; kInvalidArgument
  // when they never have so much room.
  Status check_room(std::size_t n = 1) const;
  // A new one, which waits from now on. Gives it its id. REQUIRES: check_room()
  void add(const JobPtr& job);
  // See Runtime::poll. Waits without the mutex.
  Result<PolledCompletion> poll(CompletionId id, std::int64_t wait_ms, Lock& lock);
  // See Runtime::wait_any. Waits without the mutex.
  void wait_any(std::span<const CompletionId> ids, std::int64_t wait_ms, Lock& lock);
  // See Runtime::cancel.
  Status cancel(CompletionId id);
  // Null: unknown.
  JobPtr find(CompletionId id) const;

  const std::deque<JobPtr>& waiting() const { return queue_; }
  const std::vector<JobPtr>& running() const { return running_; }  // in order of admission
  bool any() const { return !queue_.empty() || !running_.empty(); }
  // Of a station, waiting and running.
  std::size_t open_jobs(const Station& station) const;
  bool runs_any(const Station& station) const;
  JobPtr find_running(const Station& station, RequestId id) const;

  // waiting()[i] gets a slot.
  JobPtr admit(std::size_t i);
  // More of its text, for those who poll and those who subscribe.
  void give_out(Job& job, std::vector<SaidToken> tokens);
  // Its result is complete.
  void finish(Job& job);
  void fail(Job& job, Status why);
  // Ends it with what it has: at once while it waits, within one step while it runs. Fine when it
  // has ended, or is being ended.
  void end(Job& job, EndedBy by);
  void end_all_of(const Station& station, EndedBy by);
  // All that run fail.
  void fail_running(const Station& station, const Status& why);

  // Until the runtime's end: sleeps until the first deadline of all open requests (or, with
  // end_unpolled, until the first may be given up), or until the first result that nobody fetches
  // is to be forgotten; ends those that have run out of time, and forgets. On a thread of its own,
  // so that a step that does not return keeps nobody waiting. Without the mutex.
  void keep_time();

  // At the runtime's end. The first as far as there is memory for it; the decode threads then give
  // out what was said so far. The second, when they are gone, for what is still open, and waits
  // until no poll() or wait_any() waits any more.
  void end_running(EndedBy by);
  void end_everything(Lock& lock);

  // Since the start, over all requests.
  const RuntimeTotals& totals() const { return totals_; }

  // `most`: requests that may run at once.
  std::string check_integrity(std::size_t most) const;

 private:
  // When it is to end, by its deadline or for want of a poll, or when its result is to be
  // forgotten; TimePoint::max(): neither.
  TimePoint due(const Job& job) const;
  // Ends what has run out of time, and forgets what nobody has fetched or holds.
  void end_due(TimePoint now);
  bool waits(const Job& job) const;
  Status unknown(CompletionId id) const;
  void post(const Job& job, const std::vector<SaidToken>& tokens);
  void count(const Completion& completion);

  RuntimeShared& shared_;
  DrafterNotes& drafters_;
  std::deque<JobPtr> queue_;
  std::vector<JobPtr> running_;
  std::map<CompletionId, JobPtr> known_;
  const std::shared_ptr<std::atomic<CompletionId>> last_id_;  // not null
  RuntimeTotals totals_;
  int polls_ = 0;                        // calls of poll() and wait_any() that are waiting
  std::condition_variable no_poll_;      // polls_ is 0
  std::condition_variable any_changed_;  // some job's `changed`
};

}  // namespace outrider
