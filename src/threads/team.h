// Team: threads that compute one thing after the other together, with barriers in between.
//
// It does for ggml's graphs what OpenMP's threads do (src/llama/kernels/compute_threads.cc), on
// machines that have other work as well: see gate.h. Its threads end with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "threads/core_share.h"
#include "threads/gate.h"

namespace outrider::threads {

// How many cores a team computes on: as many as asked for, or, of these, as many as others leave.
// Others are other processes, and other teams of this one.
enum class Cores { kAsked, kLeft };

class Team {
 public:
  static constexpr int kMostThreads = 1023;

  // What a thread of a team is while it works: `index` of `n`.
  struct Member {
    Team* team = nullptr;
    int index = 0;
    int n = 1;
    Patience* patience = nullptr;
  };

  Team();
  ~Team();  // Not while it runs something.
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // What runs from now on do. Not while it runs something.
  void compute_on(Cores cores) { cores_ = cores; }

  // Runs work(data) on n threads at once, of which the caller's is number 0, and returns when it
  // has ended on all. n: 1 to kMostThreads. Where the system gives no more threads, or others have
  // the cores (Cores::kLeft, core_share.h), there are fewer than asked for; here()->n tells. What
  // is run must not throw. One run at a time; within a run of any team, `work` is run on the
  // caller's thread alone.
  void run(int n, void (*work)(void*), void* data);

  // Runs work(data) on the calling thread alone, as a run within a run.
  static void run_alone(void (*work)(void*), void* data);

  // What the team's threads have computed so far, in nanoseconds: the others since they began, a
  // caller in its runs, and between them as long as no other thread calls (then the team waits for
  // it, so it takes no core from the team). Not while it runs something.
  std::int64_t computed_ns() const;

  // Runs of this process that took fewer threads than asked for, since others had the cores. Any
  // thread.
  static std::int64_t n_narrowed();

  // The calling thread's place in the run that it works for; null outside of one.
  static const Member* here();

  // Returns once all threads of the calling thread's run have called it. Within a run only; each
  // thread of it calls it as often as every other.
  static void meet();

 private:
  class Worker;

  // The run to do: its number, of which only a change matters, and how many threads it has. Both in
  // one word, so that a thread that was late for a run it had no part in never sees half of the
  // next.
  static constexpr std::uint32_t kCountBits = 10;
  static int count_of(std::uint32_t job) {
    return static_cast<int>(job & ((1U << kCountBits) - 1));
  }

  int grow_to(int n);
  int share_of(int n);
  void count_caller();
  void start(int n);
  void work_as(Member& member);

  Cores cores_ = Cores::kAsked;
  void (*work_)(void*) = nullptr;  // written between runs only, before job_
  void* data_ = nullptr;
  Patience patience_;  // of number 0, whatever thread that is
  CoreShare share_;
  std::atomic<bool> crowded_{false};  // some other thread's core, since the last look
  std::int64_t ended_ns_ = 0;         // the last run
  std::int64_t callers_ns_ = 0;       // of computed_ns()
  std::uint64_t caller_ = 0;          // thread_number() of the last
  double caller_ms_ = 0.0;            // what that one had computed when it was counted
  std::vector<std::unique_ptr<Worker>> workers_;
  alignas(64) Gate job_;
  // Where threads wait that the last run had no part for: they are not woken by each run.
  alignas(64) Gate wider_;
  alignas(64) Gate meeting_;
  alignas(64) std::atomic<int> n_arrived_{0};
};

}  // namespace outrider::threads
