#include "base/machine_memory.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

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

// A control group: its folder, and what its files are called in its version of control groups.
struct Group {
  std::filesystem::path folder;
  bool first_version = false;

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
    // Cached files count as used there, and go when memory is wanted.
    const char* const key = first_version ? "total_inactive_file " : "inactive_file ";
    const std::uint64_t cached = number_of(folder / "memory.stat", key).value_or(0);
    const std::uint64_t taken = *used > cached ? *used - cached : 0;
    return *most > taken ? *most - taken : 1;  // 0 would mean "not known"
  }
};

// The group at `path` below where groups are mounted, and all around it up to there: each one's
// limit holds. Those that are not seen from here, as a container's path on its host is not, have no
// files.
void add_groups(const std::filesystem::path& mount, const std::string& path, bool first_version,
                std::vector<Group>& groups) {
  std::filesystem::path folder = mount;
  groups.push_back({.folder = folder, .first_version = first_version});
  if (path.find("/..") != std::string::npos) return;  // not below the mount
  for (const std::filesystem::path& name : std::filesystem::path(path).relative_path()) {
    folder /= name;
    groups.push_back({.folder = folder, .first_version = first_version});
  }
}

// The process's groups that may limit its memory. A line of /proc/self/cgroup is
// "0::/system.slice/outrider.service", or "4:cpu,memory:/path" of the first version.
std::vector<Group> memory_groups(const std::filesystem::path& root) {
  const std::filesystem::path mount = root / "sys/fs/cgroup";
  std::vector<Group> groups;
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (line.rfind("0::", 0) == 0) add_groups(mount, path, /*first_version=*/false, groups);
    if (controllers.find(",memory,") != std::string::npos) {
      add_groups(mount / "memory", path, /*first_version=*/true, groups);
    }
  }
  if (groups.empty()) groups.push_back({.folder = mount});
  return groups;
}

// The smaller one; 0 is "not known".
std::uint64_t smaller(std::uint64_t a, std::uint64_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

}  // namespace

std::uint64_t free_memory(const std::filesystem::path& root) {
  std::uint64_t bytes = number_of(root / "proc/meminfo", "MemAvailable:").value_or(0) * 1024;
  for (const Group& group : memory_groups(root)) bytes = smaller(bytes, group.left().value_or(0));
  return bytes;
}

std::uint64_t control_group_limit(const std::filesystem::path& root) {
  std::uint64_t bytes = 0;
  for (const Group& group : memory_groups(root)) bytes = smaller(bytes, group.limit().value_or(0));
  return bytes;
}

}  // namespace outrider
