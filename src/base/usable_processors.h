// How many processors this process may compute on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace outrider {

// The processor time that this process's control groups allow, in processors, rounded up: 2 for a
// container that was started with --cpus=1.5. 0 without a limit (not Linux). More threads than
// these use the time of a period up early, and then all wait for the next one. `root`: where /proc
// and /sys are; for tests. Any thread.
std::int32_t processor_quota(const std::filesystem::path& root = "/");

// The processors (hardware threads) that the calling thread may run on, at most processor_quota();
// at least 1. The largest number where neither is known. Any thread.
std::int32_t usable_processors();

// How many physical cores these processors belong to, by the system's lists of those that share one
// (thread_siblings_list). A processor without a list, as one that is offline is, counts as none; 0
// where none has one. `root`: as above. Any thread.
std::int32_t cores_of(std::span<const std::int32_t> processors,
                      const std::filesystem::path& root = "/");

// The same of the processors that the calling thread may run on; 0 where that is not known (not
// Linux, no /sys). Any thread.
std::int32_t usable_cores();

}  // namespace outrider
