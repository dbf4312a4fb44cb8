#include "base/machine_memory.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace outrider {
namespace {

class MachineMemory : public ::testing::Test {
 protected:
  ~MachineMemory() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::uint64_t read() { return free_memory(root_); }

  const std::filesystem::path root_ =
      ::testing::TempDir() + "machine_memory_" + std::to_string(getpid());
};

TEST_F(MachineMemory, WhereNothingSaysSoItIsNotKnown) { EXPECT_EQ(read(), 0u); }

TEST_F(MachineMemory, ItIsWhatTheKernelEstimates) {
  write("proc/meminfo", "MemTotal:  100 kB\nMemFree: 3 kB\nMemAvailable:    40 kB\n");
  EXPECT_EQ(read(), 40u * 1024);
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/memory.current", "7\n");
  EXPECT_EQ(read(), 40u * 1024);
}

TEST_F(MachineMemory, AControlGroupsLimitIsSmaller) {
  write("proc/meminfo", "MemAvailable:    40 kB\n");
  write("sys/fs/cgroup/memory.max", "10000\n");
  write("sys/fs/cgroup/memory.current", "6000\n");
  EXPECT_EQ(read(), 4000u);
  write("sys/fs/cgroup/memory.stat", "anon 4000\ninactive_file 1500\n");
  EXPECT_EQ(read(), 5500u);
  write("sys/fs/cgroup/memory.current", "90000\n");
  EXPECT_EQ(read(), 1u) << "nothing is left, which is not the same as not known";
}

TEST_F(MachineMemory, DamagedFilesAreNotKnown) {
  write("proc/meminfo", "MemAvailable: much\n");
  EXPECT_EQ(read(), 0u);
}

}  // namespace
}  // namespace outrider
