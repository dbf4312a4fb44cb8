#include "store/file_lock.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "testing/tiny_dir.h"

namespace outrider {
namespace {

// Whether somebody has it.
bool is_locked(const std::string& path) {
  bool had_to_wait = false;
  const FileLock lock(path, [&had_to_wait] {
    had_to_wait = true;
    return false;
  });
  return had_to_wait;
}

TEST(FileLock, OneAtATime) {
  const std::string path = ::testing::TempDir() + "file_lock_test_" + std::to_string(getpid());
  {
    const FileLock lock(path);
    EXPECT_TRUE(is_locked(path));
  }
  EXPECT_FALSE(is_locked(path));
  std::remove(path.c_str());
}

TEST(FileLock, WhoWaitsForALimitedTimeIsToldThatSomebodyHasItStill) {
  const std::string path = ::testing::TempDir() + "file_lock_limit_" + std::to_string(getpid());
  {
    const FileLock lock(path, FileLock::for_at_most(std::chrono::milliseconds(1)));
    EXPECT_FALSE(lock.gave_up()) << "nobody has it";
    const FileLock other(path, FileLock::for_at_most(std::chrono::milliseconds(1)));
    EXPECT_TRUE(other.gave_up());
    EXPECT_TRUE(is_locked(path)) << "who gave up unlocks nothing";
  }
  const FileLock nowhere(path + "/none", FileLock::for_at_most(std::chrono::milliseconds(1)));
  EXPECT_FALSE(nowhere.gave_up()) << "it cannot be made";
  std::remove(path.c_str());
}

// Each of those in front may take as long as one may.
TEST(FileLock, WhoWaitsDoesNotGiveUpWhileOthersReplaceTheFile) {
  const std::string file = ::testing::TempDir() + "file_lock_replaced_" + std::to_string(getpid());
  const FileLock::KeepWaiting blind = FileLock::for_at_most(std::chrono::milliseconds(1));
  const FileLock::KeepWaiting keep = FileLock::for_at_most(std::chrono::milliseconds(20), file);
  for (std::size_t i = 1; i <= 5; ++i) {
    testing::write_bytes(file, std::string(i, 'x'));
    EXPECT_TRUE(keep()) << i;  // sleeps until all of the patience is gone
  }
  EXPECT_FALSE(keep()) << "nobody has replaced it since";
  (void)blind();
  EXPECT_FALSE(blind()) << "the control";
  std::remove(file.c_str());
}

TEST(FileLock, ALargeFileIsGivenTheTimeThatItTakes) {
  const std::string file = ::testing::TempDir() + "file_lock_large_" + std::to_string(getpid());
  constexpr std::chrono::milliseconds kNone{0};
  testing::write_bytes(file, "small");
  EXPECT_FALSE(FileLock::for_at_most(kNone, file)());
  std::filesystem::resize_file(file, std::uintmax_t{1} << 30);  // two minutes; it has no blocks
  EXPECT_TRUE(FileLock::for_at_most(kNone, file)());
  EXPECT_FALSE(FileLock::for_at_most(kNone, file + ".none")());
  std::remove(file.c_str());
}

TEST(FileLock, AChildThatWasForkedMeanwhileDoesNotKeepIt) {
  const std::string path = ::testing::TempDir() + "file_lock_fork_" + std::to_string(getpid());
  pid_t child = -1;
  {
    const FileLock lock(path);
    child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (;;) pause();  // until it is killed, or ends with the test's process group
    }
  }
  EXPECT_FALSE(is_locked(path));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace outrider
