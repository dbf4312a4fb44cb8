#include "base/usable_processors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

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

class CoresOf : public FakeRoot {
 protected:
  // Gives a processor a list.
  void list(std::int32_t processor, const std::string& siblings) const {
    write(
        "sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/thread_siblings_list",
        siblings + "\n");
  }
  std::int32_t cores(const std::vector<std::int32_t>& processors) const {
    return cores_of(processors, root_);
  }
};

TEST_F(CoresOf, ProcessorsThatShareACoreAreOne) {
  for (const std::int32_t i : {0, 1}) list(i, "0-1");
  for (const std::int32_t i : {2, 3}) list(i, "2-3");
  for (const std::int32_t i : {4, 5}) list(i, "4-5");
  EXPECT_EQ(cores({0, 1, 2, 3}), 2) << "the machine has three, and four may be run on";
  EXPECT_EQ(cores({1, 2}), 2);
  EXPECT_EQ(cores({4, 5}), 1);
  EXPECT_EQ(cores({0, 1, 2, 3, 4, 5}), 3);
}

TEST_F(CoresOf, SiblingsThatAreOfflineEndNoCount) {
  std::vector<std::int32_t> all;
  for (std::int32_t i = 0; i < 16; ++i) {
    all.push_back(i);
    if (i % 2 == 0) list(i, std::to_string(i));
    write("sys/devices/system/cpu/cpu" + std::to_string(i) + "/online", i % 2 == 0 ? "1\n" : "0\n");
  }
  EXPECT_EQ(cores(all), 8);
}

TEST_F(CoresOf, WhereNothingSaysSoTheyAreNotKnown) {
  EXPECT_EQ(cores({0, 1}), 0);
  list(0, "");
  EXPECT_EQ(cores({0, 1}), 0);
  EXPECT_EQ(cores({}), 0);
}

TEST(UsableCores, AreNoMoreThanTheProcessors) {
  EXPECT_GE(usable_cores(), 0);
  EXPECT_LE(usable_cores(), static_cast<std::int32_t>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace outrider
