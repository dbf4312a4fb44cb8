#include "base/usable_processors.h"

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

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

// Those that the calling thread may run on, by their numbers; empty where that is not known.
std::vector<std::int32_t> allowed_processors() {
  std::vector<std::int32_t> processors;
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return processors;
  for (std::int32_t i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<std::size_t>(i), &allowed)) processors.push_back(i);
  }
#endif
  return processors;
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
  const std::vector<std::int32_t> allowed = allowed_processors();
  if (!allowed.empty()) processors = static_cast<std::int32_t>(allowed.size());
  const std::int32_t quota = processor_quota();
  if (quota > 0) processors = std::min(processors, quota);
  return std::max(processors, 1);
}

std::int32_t cores_of(std::span<const std::int32_t> processors, const std::filesystem::path& root) {
  std::set<std::string> cores;
  for (const std::int32_t processor : processors) {
    std::ifstream file(root / "sys/devices/system/cpu" / ("cpu" + std::to_string(processor)) /
                       "topology/thread_siblings_list");
    std::string siblings;
    if (std::getline(file, siblings) && !siblings.empty()) cores.insert(std::move(siblings));
  }
  return static_cast<std::int32_t>(cores.size());
}

std::int32_t usable_cores() { return cores_of(allowed_processors()); }

}  // namespace outrider
