// CoreShare: how many threads are worth computing with on a machine whose cores others use as well.
//
// Idea. Threads that wait for each other several hundred times a step go at the pace of the one
// that has its core for the least time. Where others take a core, a thread less has no one to wait
// for: two programs with two threads each on two cores make a fifth of what each makes alone, with
// one thread each more than half. So what others compute is looked at, and as many threads are used
// as cores are left, but at least half of those asked for: on cores that everybody wants, whoever
// takes fewer gets less, and would take fewer still.
#pragma once

#include <cstdint>
#include <optional>
#include <thread>

namespace outrider::threads {

// Time that was computed on the cores that the process may use, by all programs.
struct CoreTimes {
  int n_cores = 0;
  std::int64_t busy_ns = 0;
};

// From /proc/stat. Nothing where the system does not tell.
std::optional<CoreTimes> read_core_times();

// About one team, by one thread at a time.
//
// Tested by core_share_test.cc; benchmarks: bench/shared_machine.py.
class CoreShare {
 public:
  // Cores are looked at so often: times are counted in hundredths of a second. 30 us with 2 cores.
  static constexpr std::int64_t kEachNs = 200'000'000;

  // Whether look() has something to do: where nobody wants the team's cores, and all threads asked
  // for are used, it is not called, and costs nothing.
  bool is_due(bool crowded, std::int64_t now_ns) const {
    return (crowded || least_left_ >= 0) && now_ns - looked_at_ns_ >= kEachNs;
  }

  // `own_ns`: what the team's threads have computed so far; `now_ns`: a clock that never falls.
  void look(std::int64_t now_ns, std::int64_t own_ns, const std::optional<CoreTimes>& times);

  // Of `n` threads, how many to compute with.
  int of(int n) const;

 private:
  std::thread::id thread_;  // that looked last: another's time is not in the sum before
  std::int64_t looked_at_ns_ = -kEachNs;
  std::int64_t own_ns_ = 0;
  std::int64_t busy_ns_ = 0;
  int least_left_ = -1;  // cores that others leave; less than 0: nothing to be careful about
};

}  // namespace outrider::threads
