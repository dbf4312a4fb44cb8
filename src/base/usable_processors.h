// How many processors this process may compute on.
#pragma once

#include <cstdint>
#include <filesystem>

namespace outrider {

// The processor time that this process's control groups allow, in processors, rounded up: 2 for a
// container that was started with --cpus=1.5. 0 without a limit (not Linux). More threads than
// these use the time of a period up early, and then all wait for the next one. `root`: where /proc
// and /sys are; for tests. Any thread.
std::int32_t processor_quota(const std::filesystem::path& root = "/");

// The processors (hardware threads) that the calling thread may run on, at most processor_quota();
// at least 1. The largest number where neither is known. Any thread.
std::int32_t usable_processors();

}  // namespace outrider
