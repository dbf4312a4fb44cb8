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

// Which cores a team computes on: as many as asked for, or those that others leave.
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

  explicit Team(Cores cores = Cores::kAsked);
  ~Team();  // Not while it runs something.
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Runs work(data) on n threads at once, of which the caller's is number 0, and returns when it
  // has ended on all. n: 1 to kMostThreads. Where the system gives no more threads, or others have
  // the cores (Cores::kLeft, core_share.h), there are fewer than asked for; here()->n tells. What
  // is run must not throw. One run at a time; within a run of any team, `work` is run on the
  // caller's thread alone.
  void run(int n, void (*work)(void*), void* data);

  // Runs work(data) on the calling thread alone, as a run within a run.
  static void run_alone(void (*work)(void*), void* data);

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
  std::int64_t computed_ns() const;
  void work_as(Member& member);

  const Cores cores_;
  void (*work_)(void*) = nullptr;  // written between runs only, before job_
  void* data_ = nullptr;
  Patience patience_;  // of number 0, whatever thread that is
  CoreShare share_;
  std::atomic<bool> crowded_{false};  // some thread's core, since that was last asked
  std::vector<std::unique_ptr<Worker>> workers_;
  alignas(64) Gate job_;
  alignas(64) Gate meeting_;
  alignas(64) std::atomic<int> n_arrived_{0};
};

}  // namespace outrider::threads
