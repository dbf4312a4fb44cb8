#include "store/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <random>
#include <thread>

#include "store/store_file.h"
#include "store/store_writer.h"
#include "testing/chi_square.h"
#include "testing/faulty_file_ops.h"
#include "testing/sanitized.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

using testing::FaultyFileOps;

constexpr int kKills = testing::kSanitized ? 60 : 1000;

constexpr std::size_t kWords = 60000;  // 240 KB a file

// A store whose words all have the value `version`.
Status save_version(const std::string& path, std::uint32_t version, FileOps& ops) {
  const std::vector<std::uint32_t> words(kWords, version);
  StoreContents contents;
  contents.kind = "test";
  contents.params[0] = version;
  contents.sections = {make_section("words", std::span<const std::uint32_t>(words))};
  return save_store(path, contents, ops);
}

// The version that the file holds, whole; 0 and a failure when it is no whole store.
std::uint32_t version_of(const std::string& path) {
  Result<std::unique_ptr<StoreFile>> file = StoreFile::open(path, "test");
  EXPECT_TRUE(file.ok()) << file.status().message();
  if (!file.ok()) return 0;
  EXPECT_TRUE((*file)->verify().ok());
  Result<std::span<const std::uint32_t>> words = (*file)->section<std::uint32_t>("words");
  EXPECT_TRUE(words.ok());
  if (!words.ok()) return 0;
  const std::uint32_t version = static_cast<std::uint32_t>((*file)->param(0));
  EXPECT_EQ(words->size(), kWords);
  for (const std::uint32_t word : *words) {
    if (word != version) ADD_FAILURE() << "two versions in one file";
    if (word != version) return 0;
  }
  return version;
}

class AtomicFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(save_version(path_, 1, plain_).ok()); }

  testing::TempDir dir_;
  std::string path_ = dir_.file("x.store");
  FileOps plain_;
};

TEST_F(AtomicFileTest, EveryCallThatFailsLeavesTheOldFileAndNothingElse) {
  FaultyFileOps count;
  ASSERT_TRUE(save_version(path_, 2, count).ok());
  ASSERT_EQ(version_of(path_), 2u);
  const int last = count.calls() - 1;  // syncing the folder, when the new file is in place
  ASSERT_GE(last, 6);
  for (const int reason : {ENOSPC, EIO, EDQUOT}) {
    for (const bool stay_broken : {true, false}) {
      for (int call = 0; call < last; ++call) {
        FaultyFileOps ops;
        ops.fail_at = call;
        ops.reason = reason;
        ops.stay_broken = stay_broken;
        const Status status = save_version(path_, 3, ops);
        ASSERT_FALSE(status.ok()) << "call " << call;
        EXPECT_EQ(status.code() == StatusCode::kResourceExhausted, reason != EIO);
        EXPECT_NE(status.message().find(path_), std::string::npos);
        ASSERT_EQ(version_of(path_), 2u) << "call " << call;
        ASSERT_EQ(dir_.n_entries(), 1) << "call " << call;
      }
    }
  }
}

TEST_F(AtomicFileTest, AFolderThatCannotBeSyncedIsReportedWithTheNewFileInPlace) {
  FaultyFileOps count;
  ASSERT_TRUE(save_version(path_, 2, count).ok());
  FaultyFileOps ops;
  ops.fail_at = count.calls() - 1;
  const Status status = save_version(path_, 3, ops);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("in place"), std::string::npos);
  EXPECT_EQ(version_of(path_), 3u);
  EXPECT_EQ(dir_.n_entries(), 1);
}

TEST_F(AtomicFileTest, AFailureOnClosingCounts) {
  FaultyFileOps ops;
  ops.fail_close = true;
  ops.reason = ENOSPC;
  EXPECT_EQ(save_version(path_, 2, ops).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(version_of(path_), 1u);
  EXPECT_EQ(dir_.n_entries(), 1);
}

TEST_F(AtomicFileTest, ShortAndInterruptedWritesAreContinued) {
  for (const std::size_t most : {std::size_t{17}, std::size_t{4096}}) {
    FaultyFileOps ops;
    ops.most_per_write = most;
    ops.fail_at = 40;
    ops.stay_broken = false;
    ops.reason = EINTR;
    ASSERT_TRUE(save_version(path_, 4, ops).ok());
    EXPECT_EQ(version_of(path_), 4u);
  }
  FaultyFileOps full;
  full.most_per_write = 0;
  EXPECT_EQ(save_version(path_, 5, full).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(version_of(path_), 4u);
}

// Each child dies within a call that is drawn, a write after half of it, a rename after it.
TEST_F(AtomicFileTest, AKillWithinAnyCallLeavesTheOldFileOrTheNew) {
  const std::uint64_t seed = testing::test_seed(20261121);
  std::mt19937_64 random(seed);
  FaultyFileOps count;
  count.most_per_write = 8192;
  ASSERT_TRUE(save_version(path_, 1, count).ok());
  std::uint32_t old_version = 1;
  int n_old = 0;
  for (int i = 0; i < kKills; ++i) {
    const std::uint32_t new_version = old_version + 1;
    // The last three calls (sync, rename, folder) are as likely as all the others.
    const int n = count.calls();
    const int kill_at = random() % 2 == 0 ? static_cast<int>(random() % static_cast<unsigned>(n))
                                          : n - 1 - static_cast<int>(random() % 3);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      FaultyFileOps ops;
      ops.most_per_write = 8192;
      ops.kill_at = kill_at;
      (void)save_version(path_, new_version, ops);
      ::_exit(0);
    }
    int how = 0;
    ASSERT_EQ(::waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    const std::uint32_t found = version_of(path_);
    ASSERT_TRUE(found == old_version || found == new_version) << "seed " << seed << ", kill " << i;
    n_old += found == old_version ? 1 : 0;
    old_version = found;
  }
  // Both must have happened, or the test has tested one half of the claim.
  EXPECT_GT(n_old, kKills / 10);
  EXPECT_LT(n_old, kKills - kKills / 10);
}

// And killed from outside, at any time: the child tells of each version that it has saved, and dies
// in one of the next ones.
TEST_F(AtomicFileTest, AKillAtAnyTimeLeavesAWholeFile) {
  const std::uint64_t seed = testing::test_seed(20261122);
  std::mt19937_64 random(seed);
  std::uint32_t newest = 1;
  for (int i = 0; i < kKills / 10; ++i) {
    int saved[2];
    ASSERT_EQ(::pipe(saved), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (std::uint32_t version = newest + 1;; ++version) {
        (void)save_version(path_, version, plain_);
        if (::write(saved[1], "", 1) != 1) ::_exit(1);
      }
    }
    ::close(saved[1]);
    const std::uint32_t told = static_cast<std::uint32_t>(random() % 3);
    char byte = 0;
    for (std::uint32_t n = 0; n < told; ++n) ASSERT_EQ(::read(saved[0], &byte, 1), 1);
    for (std::uint64_t n = random() % 2000; n > 0; --n) std::this_thread::yield();
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int how = 0;
    ASSERT_EQ(::waitpid(child, &how, 0), child);
    ::close(saved[0]);
    const std::uint32_t found = version_of(path_);
    ASSERT_GE(found, newest + told) << "seed " << seed << ", kill " << i;
    newest = found;
  }
  EXPECT_GT(newest, 1u);
}

TEST_F(AtomicFileTest, ALinkStaysALinkAndTheModeStays) {
  ASSERT_EQ(::chmod(path_.c_str(), 0640), 0);
  const std::string link = dir_.file("link");
  std::filesystem::create_symlink(path_, link);
  ASSERT_TRUE(save_version(link, 7, plain_).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(version_of(path_), 7u);
  struct stat info;
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(AtomicFileTest, AReaderKeepsTheFileThatItOpened) {
  Result<std::unique_ptr<StoreFile>> old = StoreFile::open(path_, "test");
  ASSERT_TRUE(old.ok());
  ASSERT_TRUE(save_version(path_, 2, plain_).ok());
  EXPECT_TRUE((*old)->verify().ok());
  EXPECT_EQ((*old)->param(0), 1u);
  EXPECT_EQ(version_of(path_), 2u);
}

TEST_F(AtomicFileTest, FoldersDevicesAndMissingFoldersAreRefused) {
  EXPECT_EQ(save_version(dir_.file(""), 2, plain_).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(save_version("/dev/null", 2, plain_).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(save_version(dir_.file("none/x"), 2, plain_).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace outrider
