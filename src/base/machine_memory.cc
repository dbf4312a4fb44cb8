#include "base/machine_memory.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <optional>
#include <string>

#include "base/control_groups.h"

namespace outrider {
namespace {

// The number behind `key` in a file of "key number" lines.
std::optional<std::uint64_t> number_of(const std::filesystem::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    try {
      return std::stoull(line.substr(key.size()));
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// What a control group says of memory, in the files of its version of control groups.
struct MemoryGroup : ControlGroup {
  // Bytes; nothing without a limit, which the first version writes as a huge number.
  std::optional<std::uint64_t> limit() const {
    constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;
    const std::optional<std::uint64_t> bytes =
        number_in(folder / (first_version ? "memory.limit_in_bytes" : "memory.max"));
    return bytes && *bytes < kNoLimit ? bytes : std::nullopt;
  }

  // What is left of the limit.
  std::optional<std::uint64_t> left() const {
    const std::optional<std::uint64_t> most = limit();
    const std::optional<std::uint64_t> used =
        number_in(folder / (first_version ? "memory.usage_in_bytes" : "memory.current"));
    if (!most || !used) return std::nullopt;
    // Cached files count as used there, and go when memory is wanted: those that were read more
    // than once (active) too, as in the kernel's own estimate.
    const std::string kind = first_version ? "total_" : "";
    std::uint64_t cached = 0;
    for (const char* const list : {"inactive_file ", "active_file "}) {
      cached += number_of(folder / "memory.stat", kind + list).value_or(0);
    }
    const std::uint64_t taken = *used > cached ? *used - cached : 0;
    return *most > taken ? *most - taken : 1;  // 0 would mean "not known"
  }
};

// The smaller one; 0 is "not known".
std::uint64_t smaller(std::uint64_t a, std::uint64_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

}  // namespace

std::uint64_t free_memory(const std::filesystem::path& root) {
  std::uint64_t bytes = number_of(root / "proc/meminfo", "MemAvailable:").value_or(0) * 1024;
  for (const ControlGroup& group : control_groups("memory", root)) {
    bytes = smaller(bytes, MemoryGroup{group}.left().value_or(0));
  }
  return bytes;
}

std::uint64_t control_group_limit(const std::filesystem::path& root) {
  std::uint64_t bytes = 0;
  for (const ControlGroup& group : control_groups("memory", root)) {
    bytes = smaller(bytes, MemoryGroup{group}.limit().value_or(0));
  }
  return bytes;
}

}  // namespace outrider
