#include "tests/build_paths.h"

namespace outrider::testing {

std::string outrider_binary() { return std::string(OUTRIDER_BUILD_DIR) + "/outrider"; }

std::string peer_path(const std::string& name) {
  return std::string(OUTRIDER_BUILD_DIR) + "/bin/" + name;
}

std::string commit_file() { return std::string(OUTRIDER_BUILD_DIR) + "/commit/build_commit.cc"; }

std::string example_path(const std::string& name) {
  return std::string(OUTRIDER_BUILD_DIR) + "/examples/" + name;
}

}  // namespace outrider::testing
