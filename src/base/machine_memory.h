// What main memory the machine has left.
#pragma once

#include <cstdint>
#include <filesystem>

namespace outrider {

// Bytes that this process could still take without others being swapped out: what the kernel
// estimates (MemAvailable, which counts cached files as free), and no more than what is left of the
// limit of its control group. 0 when nothing says so (not Linux). `root`: where /proc and /sys are;
// for tests. Any thread; about 50 us.
std::uint64_t free_memory(const std::filesystem::path& root = "/");

}  // namespace outrider
