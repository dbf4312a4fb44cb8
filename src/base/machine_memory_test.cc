#include "base/machine_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "base/fake_root_test.h"

namespace outrider {
namespace {

class MachineMemory : public FakeRoot {
 protected:
  std::uint64_t read() { return free_memory(root_); }
  std::uint64_t limit() { return control_group_limit(root_); }
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
  write("sys/fs/cgroup/memory.stat", "anon 3300\ninactive_file 1500\nactive_file 700\n");
  EXPECT_EQ(read(), 6200u) << "files that were read twice are cached, too";
  write("sys/fs/cgroup/memory.current", "90000\n");
  EXPECT_EQ(read(), 1u) << "nothing is left, which is not the same as not known";
}

// Only the root of a control group's namespace has its files at the mount itself.
TEST_F(MachineMemory, TheLimitOfASystemdUnitIsSeen) {
  write("proc/meminfo", "MemAvailable:    40 kB\n");
  write("proc/self/cgroup", "0::/system.slice/outrider.service\n");
  write("sys/fs/cgroup/cgroup.procs", "1\n");
  EXPECT_EQ(read(), 40u * 1024);
  EXPECT_EQ(limit(), 0u);
  const std::string unit = "sys/fs/cgroup/system.slice/outrider.service/";
  write(unit + "memory.max", "20000\n");
  write(unit + "memory.current", "6000\n");
  write(unit + "memory.stat", "inactive_file 1000\n");
  EXPECT_EQ(read(), 15000u);
  EXPECT_EQ(limit(), 20000u);
}

TEST_F(MachineMemory, OfGroupsWithinEachOtherTheLeastHolds) {
  write("proc/self/cgroup", "0::/a.slice/b:c.service\n");
  write("sys/fs/cgroup/a.slice/memory.max", "9000\n");
  write("sys/fs/cgroup/a.slice/memory.current", "8000\n");
  write("sys/fs/cgroup/a.slice/b:c.service/memory.max", "5000\n");
  write("sys/fs/cgroup/a.slice/b:c.service/memory.current", "2000\n");
  EXPECT_EQ(limit(), 5000u);
  EXPECT_EQ(read(), 1000u) << "others in the slice have taken it";
  write("sys/fs/cgroup/memory.max", "4000\n");
  write("sys/fs/cgroup/memory.current", "3500\n");
  EXPECT_EQ(limit(), 4000u);
  EXPECT_EQ(read(), 500u);
  write("sys/fs/cgroup/a.slice/b:c.service/memory.max", "max\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(limit(), 9000u);
}

TEST_F(MachineMemory, TheFirstVersionOfControlGroupsIsReadToo) {
  write("proc/self/cgroup", "9:cpuset:/other\n4:cpu,memory:/user/shell\n1:memory_x:/y\n0::/\n");
  const std::string group = "sys/fs/cgroup/memory/user/shell/";
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "7\n");
  EXPECT_EQ(limit(), 0u) << "that is how it says that there is none";
  EXPECT_EQ(read(), 0u);
  write(group + "memory.limit_in_bytes", "10000\n");
  write(group + "memory.usage_in_bytes", "6000\n");
  write(group + "memory.stat", "inactive_file 1\ntotal_inactive_file 1500\n");
  EXPECT_EQ(limit(), 10000u);
  EXPECT_EQ(read(), 5500u);
  write(group + "memory.stat", "active_file 1\ntotal_inactive_file 1500\ntotal_active_file 700\n");
  EXPECT_EQ(read(), 6200u);
}

// A container may be told its path on the host, or one above its own root; at the mount lies what
// limits it.
TEST_F(MachineMemory, OfAGroupThatIsNotSeenTheMountsOwnLimitHolds) {
  write("sys/fs/cgroup/memory.max", "3000\n");
  write("sys/fs/cgroup/memory.current", "1000\n");
  write("sys/fs/cgroup/else/memory.max", "5\n");
  for (const char* const path : {"0::/docker/0123\n", "0::/../else\n", "damaged\n", "0:\n", ""}) {
    write("proc/self/cgroup", path);
    EXPECT_EQ(limit(), 3000u) << path;
    EXPECT_EQ(read(), 2000u) << path;
  }
}

TEST_F(MachineMemory, DamagedFilesAreNotKnown) {
  write("proc/meminfo", "MemAvailable: much\n");
  write("proc/self/cgroup", "0::/a\n");
  write("sys/fs/cgroup/a/memory.max", "much\n");
  write("sys/fs/cgroup/a/memory.current", "7\n");
  EXPECT_EQ(read(), 0u);
  EXPECT_EQ(limit(), 0u);
}

}  // namespace
}  // namespace outrider
