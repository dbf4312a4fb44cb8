#include "testing/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace outrider::testing {
namespace {

std::optional<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool updates_wanted() {
  const char* value = std::getenv("OUTRIDER_UPDATE_GOLDEN");
  return value != nullptr && std::string(value) == "1";
}

}  // namespace

void expect_golden(const std::string& name, const std::string& actual) {
  const std::filesystem::path path =
      std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / name;
  if (updates_wanted()) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << actual;
    EXPECT_TRUE(file.good()) << "cannot write " << path;
    return;
  }
  const std::optional<std::string> expected = read_file(path);
  ASSERT_TRUE(expected) << path << " is missing; OUTRIDER_UPDATE_GOLDEN=1 writes it";
  EXPECT_EQ(*expected, actual) << "differs from " << path
                               << "; when that is right, OUTRIDER_UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace outrider::testing
