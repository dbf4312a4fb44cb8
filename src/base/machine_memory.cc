#include "base/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

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

// The number that is all that a file holds; nothing for "max".
std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::uint64_t number = 0;
  if (in >> number) return number;
  return std::nullopt;
}

}  // namespace

std::uint64_t free_memory(const std::filesystem::path& root) {
  std::uint64_t bytes = number_of(root / "proc/meminfo", "MemAvailable:").value_or(0) * 1024;
  const std::filesystem::path group = root / "sys/fs/cgroup";
  const std::optional<std::uint64_t> limit = number_in(group / "memory.max");
  const std::optional<std::uint64_t> used = number_in(group / "memory.current");
  if (!limit || !used) return bytes;
  // Cached files count as used there, and go when memory is wanted.
  const std::uint64_t cached = number_of(group / "memory.stat", "inactive_file ").value_or(0);
  const std::uint64_t taken = *used > cached ? *used - cached : 0;
  const std::uint64_t left = *limit > taken ? *limit - taken : 1;  // 0 would mean "not known"
  return bytes == 0 ? left : std::min(bytes, left);
}

}  // namespace outrider
