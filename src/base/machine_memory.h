// What main memory the machine has left.
#pragma once

#include <cstdint>
#include <filesystem>

namespace outrider {

// Bytes that this process could still take without others being swapped out: what the kernel
// estimates (MemAvailable, which counts cached files as free), and no more than what is left of the
// limits of its control groups. 0 when nothing says so (not Linux). `root`: where /proc and /sys
// are; for tests. Any thread; 50 to 250 us.
std::uint64_t free_memory(const std::filesystem::path& root = "/");

// The smallest limit of main memory that this process's control groups have, in bytes: a systemd
// unit's MemoryMax, say, its slice's, or a container's. 0 when there is none. Any thread.
std::uint64_t control_group_limit(const std::filesystem::path& root = "/");

}  // namespace outrider
