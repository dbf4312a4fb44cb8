#include "threads/core_share.h"

#include <algorithm>
#include <cmath>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#endif

namespace outrider::threads {

#if defined(__linux__)

std::optional<CoreTimes> read_core_times() {
  cpu_set_t allowed;
  const long ticks = sysconf(_SC_CLK_TCK);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || ticks <= 0) return std::nullopt;
  std::FILE* file = std::fopen("/proc/stat", "re");
  if (file == nullptr) return std::nullopt;
  CoreTimes times;
  std::int64_t busy = 0;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    int core = 0;
    std::int64_t user = 0, nice = 0, system = 0, idle = 0, waits = 0, irq = 0, softirq = 0;
    const int n = std::sscanf(line,
                              "cpu%d %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
                              " %" SCNd64 " %" SCNd64,
                              &core, &user, &nice, &system, &idle, &waits, &irq, &softirq);
    if (n < 8 || core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(core, &allowed)) continue;
    ++times.n_cores;
    busy += user + nice + system + irq + softirq;
  }
  (void)std::fclose(file);
  if (times.n_cores == 0) return std::nullopt;
  times.busy_ns = busy * (1'000'000'000 / ticks);
  return times;
}

#else

std::optional<CoreTimes> read_core_times() { return std::nullopt; }

#endif

void CoreShare::look(std::int64_t now_ns, std::int64_t own_ns,
                     const std::optional<CoreTimes>& times) {
  // Behind a pause, or of another thread, the sums are about something else.
  const std::int64_t since_ns = now_ns - looked_at_ns_;
  const bool follows = since_ns <= 5 * kEachNs && thread_ == std::this_thread::get_id();
  if (!times) {
    least_left_ = -1;
  } else if (follows) {
    const double others = static_cast<double>((times->busy_ns - busy_ns_) - (own_ns - own_ns_)) /
                          static_cast<double>(since_ns);
    const int left = static_cast<int>(std::lround(times->n_cores - std::max(0.0, others)));
    least_left_ = left >= times->n_cores ? -1 : std::max(0, left);
  }
  thread_ = std::this_thread::get_id();
  looked_at_ns_ = now_ns;
  own_ns_ = own_ns;
  busy_ns_ = times ? times->busy_ns : 0;
}

int CoreShare::of(int n) const {
  return least_left_ < 0 ? n : std::clamp(least_left_, (n + 1) / 2, n);
}

}  // namespace outrider::threads
