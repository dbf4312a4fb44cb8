#include "threads/core_share.h"

#include <algorithm>
#include <cmath>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>

#include <cctype>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#endif

namespace outrider::threads {

#if defined(__linux__)

namespace {

// Adds a line "cpuN user nice system idle iowait irq softirq ...". The first line is of all cores
// together and has no number.
void add_line(const char* line, const cpu_set_t& allowed, CoreTimes* times) {
  if (std::isdigit(static_cast<unsigned char>(line[3])) == 0) return;
  int core = 0;
  std::int64_t user = 0, nice = 0, system = 0, idle = 0, waits = 0, irq = 0, softirq = 0;
  const int n = std::sscanf(line + 3,
                            "%d %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
                            " %" SCNd64 " %" SCNd64,
                            &core, &user, &nice, &system, &idle, &waits, &irq, &softirq);
  if (n < 8 || core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(core, &allowed)) return;
  ++times->n_cores;
  times->busy_ticks += user + nice + system + irq + softirq;
}

}  // namespace

std::optional<CoreTimes> read_core_times() {
  cpu_set_t allowed;
  CoreTimes times{.ticks_per_s = sysconf(_SC_CLK_TCK)};
  if (times.ticks_per_s <= 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return std::nullopt;
  }
  std::FILE* file = std::fopen("/proc/stat", "re");
  if (file == nullptr) return std::nullopt;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr && std::strncmp(line, "cpu", 3) == 0) {
    add_line(line, allowed, &times);
  }
  (void)std::fclose(file);
  if (times.n_cores == 0 || times.n_cores != CPU_COUNT(&allowed)) return std::nullopt;
  return times;
}

#else

std::optional<CoreTimes> read_core_times() { return std::nullopt; }

#endif

void CoreShare::look(std::int64_t now_ns, std::int64_t ended_ns, std::int64_t own_ns,
                     const std::optional<CoreTimes>& times) {
  const bool follows =
      times && times_ && times->n_cores == times_->n_cores && now_ns - ended_ns < kPauseNs;
  left_ = -1;
  if (follows) {
    const double since_s = 1e-9 * static_cast<double>(now_ns - looked_at_ns_);
    const double busy_s = static_cast<double>(times->busy_ticks - times_->busy_ticks) /
                          static_cast<double>(times->ticks_per_s);
    const double others = (busy_s - 1e-9 * static_cast<double>(own_ns - own_ns_)) / since_s;
    const int left = static_cast<int>(std::lround(times->n_cores - std::max(0.0, others)));
    if (left < times->n_cores) left_ = std::max(0, left);
  }
  looked_at_ns_ = now_ns;
  own_ns_ = own_ns;
  times_ = times;
}

int CoreShare::of(int n) const { return left_ < 0 ? n : std::clamp(left_, (n + 1) / 2, n); }

}  // namespace outrider::threads
