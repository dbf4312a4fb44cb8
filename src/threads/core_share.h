// CoreShare: how many threads are worth computing with on a machine whose cores others use as well.
//
// Idea. Threads that wait for each other several hundred times a step go at the pace of the one
// that has its core for the least time. Where others take a core, a thread less has no one to wait
// for: two programs with two threads each on two cores make a fifth of what each makes alone, with
// one thread each more than half. So what others compute is looked at, and as many threads are used
// as cores are left, but at least half of those asked for: on cores that everybody wants, whoever
// takes fewer gets less, and would take fewer still.
//
// Tested by core_share_test.cc; benchmarks: bench/shared_machine.py.
#pragma once

#include <cstdint>
#include <optional>

namespace outrider::threads {

// Time that all programs computed on the cores that the process may use.
struct CoreTimes {
  int n_cores = 0;
  std::int64_t busy_ticks = 0;
  std::int64_t ticks_per_s = 100;
};

// From /proc/stat. Nothing where the system does not tell, or tells of other cores than those that
// the process may use (as in some containers).
std::optional<CoreTimes> read_core_times();

// About one team, by one thread at a time.
class CoreShare {
 public:
  // Cores are looked at so often: times are counted in hundredths of a second. 30 us with 2 cores.
  static constexpr std::int64_t kEachNs = 200'000'000;
  // Behind a pause as long as that, what was seen before is forgotten.
  static constexpr std::int64_t kPauseNs = 1'000'000'000;

  // Whether look() is to be called before a run: where somebody wants the team's cores, and until
  // others leave all cores.
  bool is_due(bool crowded, std::int64_t now_ns) const {
    return (crowded || left_ >= 0) && now_ns - looked_at_ns_ >= kEachNs;
  }

  // `own_ns`: what the team's threads have computed so far; `now_ns`: a clock that never falls;
  // `ended_ns`: when the team's last run ended.
  void look(std::int64_t now_ns, std::int64_t ended_ns, std::int64_t own_ns,
            const std::optional<CoreTimes>& times);

  // Of `n` threads, how many to compute with.
  int of(int n) const;

 private:
  std::int64_t looked_at_ns_ = -kEachNs;
  std::int64_t own_ns_ = 0;
  std::optional<CoreTimes> times_;
  int left_ = -1;  // cores that others leave; less than 0: all
};

}  // namespace outrider::threads
