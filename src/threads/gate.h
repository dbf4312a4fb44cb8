// Gate: a number that threads wait for to change. They spin for as long as that pays, then sleep.
//
// A thread that sleeps is woken in 20 to 100 microseconds, one that spins in less than one: too
// much for threads that wait for each other several hundred times a step of a few milliseconds. But
// one that spins beside a thread that is not running, because another process has its core, spins
// for that process' whole time slice (3 ms), on a core that it could have left to it.
#pragma once

#include <atomic>
#include <cstdint>

#include "threads/crowding.h"

namespace outrider::threads {

// A clock that never falls.
std::int64_t now_ns();

// How long a thread spins before it sleeps. One thread's.
//
// Where others want its core, next to nothing: two programs that spin for each other's threads took
// seven times as long as two that sleep. The kernel tells (Crowding). Else it is learned from the
// thread's own waits: halved where spinning would not have helped, doubled where it did or would
// have.
class Patience {
 public:
  // Between two graphs of one step pass up to some hundred microseconds, in which the next is made.
  static constexpr std::int64_t kMostNs = 200'000;
  // Less than putting a thread to sleep and waking it costs. Of 2, 5, 8, 10, 15, 20, 30 and 50
  // microseconds those from 6 to 15 kept most of the speed beside busy processes and beside a
  // second run alike (a third; SmolLM2-135M on a Zen 4 with 2 cores); 2 cost a third of it beside
  // busy ones, 20 to 50 up to half of it beside a second run.
  static constexpr std::int64_t kLeastNs = 8'000;

  std::int64_t spin_ns() const { return crowding_.crowded() ? kLeastNs : spin_ns_; }
  // Whether others want the core of the thread that waits.
  bool crowded() const { return crowding_.crowded(); }
  // What was waited for took `ns` from the start of the wait, which ended at `now_ns`.
  void learn(std::int64_t ns, std::int64_t now_ns);

 private:
  std::int64_t spin_ns_ = kMostNs;
  Crowding crowding_;
};

class Gate {
 public:
  std::uint32_t value() const { return value_.load(std::memory_order_acquire); }

  // Sets another value than the one it has and wakes who sleeps. One thread at a time. What the
  // caller wrote before is seen by whoever sees the value.
  void set(std::uint32_t value);

  // Returns once the value is not `old`, with the new one. Any number of threads.
  std::uint32_t wait_while(std::uint32_t old, Patience& patience) const;

 private:
  void sleep_while(std::uint32_t old) const;

  std::atomic<std::uint32_t> value_{0};
  mutable std::atomic<std::uint32_t> n_sleepers_{0};
};

}  // namespace outrider::threads
