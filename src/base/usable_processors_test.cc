#include "base/usable_processors.h"

#include <gtest/gtest.h>

#include <string>

#include "base/fake_root_test.h"

namespace outrider {
namespace {

class ProcessorQuota : public FakeRoot {
 protected:
  std::int32_t quota() { return processor_quota(root_); }
};

TEST_F(ProcessorQuota, WhereNothingSaysSoThereIsNone) { EXPECT_EQ(quota(), 0); }

TEST_F(ProcessorQuota, AContainersOwnIsReadAndRoundedUp) {
  write("proc/self/cgroup", "0::/\n");
  const std::string file = "sys/fs/cgroup/cpu.max";
  write(file, "max 100000\n");
  EXPECT_EQ(quota(), 0);
  write(file, "200000 100000\n");
  EXPECT_EQ(quota(), 2);
  write(file, "150000 100000\n");
  EXPECT_EQ(quota(), 2);
  write(file, "1000 100000\n");
  EXPECT_EQ(quota(), 1);
  write(file, "18446744073709551615 1\n");
  EXPECT_EQ(quota(), 2147483647);
}

TEST_F(ProcessorQuota, OfGroupsWithinEachOtherTheLeastHolds) {
  write("proc/self/cgroup", "0::/kubepods/pod/container\n");
  write("sys/fs/cgroup/kubepods/cpu.max", "6400000 100000\n");
  write("sys/fs/cgroup/kubepods/pod/cpu.max", "300000 100000\n");
  write("sys/fs/cgroup/kubepods/pod/container/cpu.max", "800000 100000\n");
  EXPECT_EQ(quota(), 3);
}

TEST_F(ProcessorQuota, TheFirstVersionOfControlGroupsIsReadToo) {
  write("proc/self/cgroup", "4:cpu,cpuacct:/docker/a\n5:cpuset:/b\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0) << "that is how it says that there is none";
  write("sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "250000\n");
  write("sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(quota(), 5);
}

TEST_F(ProcessorQuota, DamagedFilesAreNoLimit) {
  write("proc/self/cgroup", "0::/\n");
  for (const char* const text : {"", "\n", "much\n", "200000\n", "200000 0\n", "0 100000\n"}) {
    write("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(quota(), 0) << text;
  }
}

TEST(UsableProcessors, ThereIsAtLeastOne) { EXPECT_GE(usable_processors(), 1); }

}  // namespace
}  // namespace outrider
