// A folder with /proc and /sys as a test writes them.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace outrider {

class FakeRoot : public ::testing::Test {
 protected:
  ~FakeRoot() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::filesystem::path root_ =
      ::testing::TempDir() + "fake_root_" + std::to_string(getpid());
};

}  // namespace outrider
