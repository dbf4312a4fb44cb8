#include "threads/team.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#if defined(__linux__)
#include <pthread.h>
#include <time.h>
#endif

#include "base/clock.h"

namespace outrider::threads {
namespace {

Team::Member*& current() {
  static thread_local Team::Member* member = nullptr;
  return member;
}

std::atomic<std::int64_t>& narrowed() {
  static std::atomic<std::int64_t> n{0};
  return n;
}

// Sets and restores the calling thread's place.
class Place {
 public:
  explicit Place(Team::Member& member) : before_(current()) { current() = &member; }
  ~Place() { current() = before_; }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  Team::Member* before_;
};

}  // namespace

// A thread of a team other than the caller's. It ends when a job for no thread is set.
class Team::Worker {
 public:
  // `seen`: the job before the first that it may take part in.
  Worker(Team& team, int index, std::uint32_t seen)
      : thread_([&team, index, seen] { serve(team, index, seen); }) {}

  // What it has computed so far.
  std::int64_t computed_ns() const {
#if defined(__linux__)
    clockid_t clock = 0;
    timespec time = {};
    auto& thread = const_cast<std::jthread&>(thread_);
    if (pthread_getcpuclockid(thread.native_handle(), &clock) == 0 &&
        clock_gettime(clock, &time) == 0) {
      return std::int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
    }
#endif
    return 0;
  }

 private:
  static void serve(Team& team, int index, std::uint32_t seen) {
    Patience patience;
    Member member{.team = &team, .index = index, .n = 1, .patience = &patience};
    for (;;) {
      // Before the job: a run that is wider than that one has set it since.
      const std::uint32_t wider = team.wider_.value();
      seen = team.job_.wait_while(seen, patience);
      member.n = count_of(seen);
      if (member.n == 0) return;
      if (index >= member.n) {
        team.wider_.wait_while(wider, patience);
        continue;
      }
      team.work_as(member);
      if (patience.crowded()) team.crowded_.store(true, std::memory_order_relaxed);
    }
  }

  std::jthread thread_;
};

Team::Team() = default;

Team::~Team() {
  start(0);
  wider_.set(wider_.value() + 1);
  workers_.clear();  // what they wait at goes after them
}

// A run of n threads; 0: the end.
void Team::start(int n) {
  const std::uint32_t before = job_.value();
  job_.set(((before >> kCountBits) + 1) << kCountBits | static_cast<std::uint32_t>(n));
  if (n > count_of(before)) wider_.set(wider_.value() + 1);
}

int Team::grow_to(int n) {
  // Whoever calls is C, through which nothing may be thrown: without memory as without threads,
  // those that are here do.
  try {
    workers_.reserve(static_cast<std::size_t>(n));  // nothing may fail once a thread runs
    while (static_cast<int>(workers_.size()) < n - 1) {
      const int index = static_cast<int>(workers_.size()) + 1;
      workers_.push_back(std::make_unique<Worker>(*this, index, job_.value()));
    }
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  return std::min(n, static_cast<int>(workers_.size()) + 1);
}

void Team::work_as(Member& member) {
  const Place place(member);
  work_(data_);
  meet();
}

void Team::run_alone(void (*work)(void*), void* data) {
  Member alone;
  const Place place(alone);
  work(data);
}

std::int64_t Team::computed_ns() const {
  std::int64_t sum = callers_ns_;
  for (const auto& worker : workers_) sum += worker->computed_ns();
  return sum;
}

// Adds what the calling thread has computed since it was counted last.
void Team::count_caller() {
  const double ms = thread_ms();
  const std::uint64_t caller = thread_number();
  if (caller == caller_) callers_ns_ += static_cast<std::int64_t>(1e6 * (ms - caller_ms_));
  caller_ = caller;
  caller_ms_ = ms;
}

int Team::share_of(int n) {
  const bool crowded = patience_.crowded() || crowded_.load(std::memory_order_relaxed);
  const std::int64_t now = now_ns();
  if (share_.is_due(crowded, now)) {
    crowded_.store(false, std::memory_order_relaxed);
    share_.look(now, ended_ns_, computed_ns(), read_core_times());
  }
  return share_.of(n);
}

void Team::run(int n, void (*work)(void*), void* data) {
  assert(n >= 1 && n <= kMostThreads);
  if (current() != nullptr) return run_alone(work, data);
  // In each run, whatever cores it computes on: what is not the team's own is others'.
  count_caller();
  if (n > 1 && cores_ == Cores::kLeft) {
    const int asked = std::exchange(n, share_of(n));
    if (n < asked) narrowed().fetch_add(1, std::memory_order_relaxed);
  }
  Member first{.team = this, .index = 0, .n = grow_to(n), .patience = &patience_};
  work_ = work;
  data_ = data;
  if (first.n > 1) start(first.n);
  work_as(first);
  count_caller();
  ended_ns_ = now_ns();
}

std::int64_t Team::n_narrowed() { return narrowed().load(std::memory_order_relaxed); }

const Team::Member* Team::here() { return current(); }

void Team::meet() {
  Member& member = *current();
  if (member.n == 1) return;
  Team& team = *member.team;
  const std::uint32_t meeting = team.meeting_.value();
  if (team.n_arrived_.fetch_add(1, std::memory_order_acq_rel) == member.n - 1) {
    team.n_arrived_.store(0, std::memory_order_relaxed);
    team.meeting_.set(meeting + 1);
  } else {
    team.meeting_.wait_while(meeting, *member.patience);
  }
}

}  // namespace outrider::threads
