#include "base/control_groups.h"

#include <cstddef>
#include <fstream>

namespace outrider {
namespace {

// The group at `path` below where groups are mounted, and all around it up to there.
void add_groups(const std::filesystem::path& mount, const std::string& path, bool first_version,
                std::vector<ControlGroup>& groups) {
  std::filesystem::path folder = mount;
  groups.push_back({.folder = folder, .first_version = first_version});
  if (path.find("/..") != std::string::npos) return;  // not below the mount
  for (const std::filesystem::path& name : std::filesystem::path(path).relative_path()) {
    folder /= name;
    groups.push_back({.folder = folder, .first_version = first_version});
  }
}

}  // namespace

// A line of /proc/self/cgroup is "0::/system.slice/outrider.service", or "4:cpu,memory:/path" of
// the first version.
std::vector<ControlGroup> control_groups(const std::string& controller,
                                         const std::filesystem::path& root) {
  const std::filesystem::path mount = root / "sys/fs/cgroup";
  std::vector<ControlGroup> groups;
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (line.rfind("0::", 0) == 0) add_groups(mount, path, /*first_version=*/false, groups);
    if (controllers.find("," + controller + ",") != std::string::npos) {
      add_groups(mount / controller, path, /*first_version=*/true, groups);
    }
  }
  if (groups.empty()) groups.push_back({.folder = mount});
  return groups;
}

std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::uint64_t number = 0;
  if (in >> number) return number;
  return std::nullopt;
}

}  // namespace outrider
