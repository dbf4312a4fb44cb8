// The control groups of this process (Linux), whose limits hold for what it takes of the machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace outrider {

// A control group: its folder, and which version's files it has.
struct ControlGroup {
  std::filesystem::path folder;
  bool first_version = false;
};

// The process's groups that `controller` ("memory", "cpu") may limit, from the outermost inwards;
// each one's limit holds. Those that are not seen from here, as a container's path on its host is
// not, are among them and have no files. At least one. `root`: where /proc and /sys are.
std::vector<ControlGroup> control_groups(const std::string& controller,
                                         const std::filesystem::path& root);

// The number that a file begins with; nothing for "max" and for a file that is not there.
std::optional<std::uint64_t> number_in(const std::filesystem::path& file);

}  // namespace outrider
