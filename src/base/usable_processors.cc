#include "base/usable_processors.h"

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <thread>

#include "base/control_groups.h"

namespace outrider {
namespace {

// Microseconds of processor time in each so many microseconds.
struct Quota {
  std::uint64_t time = 0;
  std::uint64_t period = 0;
};

// Nothing without a limit, for which the second version writes "max", the first one -1.
std::optional<Quota> quota_of(const ControlGroup& group) {
  Quota quota;
  if (group.first_version) {
    std::ifstream time(group.folder / "cpu.cfs_quota_us");
    std::int64_t signed_time = -1;
    if (!(time >> signed_time) || signed_time <= 0) return std::nullopt;
    quota = {.time = static_cast<std::uint64_t>(signed_time),
             .period = number_in(group.folder / "cpu.cfs_period_us").value_or(0)};
  } else {
    std::ifstream both(group.folder / "cpu.max");
    if (!(both >> quota.time >> quota.period)) return std::nullopt;
  }
  if (quota.time == 0 || quota.period == 0) return std::nullopt;
  return quota;
}

}  // namespace

std::int32_t processor_quota(const std::filesystem::path& root) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  std::uint64_t least = 0;
  for (const ControlGroup& group : control_groups("cpu", root)) {
    const std::optional<Quota> quota = quota_of(group);
    if (!quota) continue;
    const std::uint64_t whole = quota->time / quota->period;
    const std::uint64_t processors = whole + (quota->time % quota->period != 0 ? 1 : 0);
    least = least == 0 ? processors : std::min(least, processors);
  }
  return static_cast<std::int32_t>(std::min(least, kMost));
}

std::int32_t usable_processors() {
  auto processors = static_cast<std::int32_t>(std::thread::hardware_concurrency());
  if (processors == 0) processors = std::numeric_limits<std::int32_t>::max();
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    processors = static_cast<std::int32_t>(CPU_COUNT(&allowed));
  }
#endif
  const std::int32_t quota = processor_quota();
  if (quota > 0) processors = std::min(processors, quota);
  return std::max(processors, 1);
}

}  // namespace outrider
