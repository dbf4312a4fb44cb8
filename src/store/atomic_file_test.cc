#include "store/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "store/part_files.h"
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

// Kills a process within a write of a new content of `path`.
void kill_within_a_save(const std::string& path) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    FaultyFileOps ops;
    ops.most_per_write = 8192;
    ops.kill_at = 3;
    (void)save_version(path, 2, ops);
    ::_exit(0);
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  ASSERT_TRUE(WIFSIGNALED(how));
}

TEST_F(AtomicFileTest, WhatKilledProcessesLeftIsRemovedByTheNextThatBegins) {
  for (int n = 1; n <= 3; ++n) {
    kill_within_a_save(path_);
    // Each removed what the one before it left.
    ASSERT_EQ(dir_.n_entries(), 2);
  }
  EXPECT_EQ(version_of(path_), 1u);
  ASSERT_TRUE(check_writable(path_).ok());
  EXPECT_EQ(dir_.n_entries(), 1);
  kill_within_a_save(path_);
  const std::string link = dir_.file("link");
  std::filesystem::create_symlink(path_, link);
  ASSERT_TRUE(save_version(link, 3, plain_).ok());
  EXPECT_EQ(version_of(path_), 3u);
  EXPECT_EQ(dir_.n_entries(), 2);
}

TEST_F(AtomicFileTest, AnEmptyNameIsFoundBeforeTheWork) {
  EXPECT_EQ(check_writable("").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(file_to_replace("").status().code(), StatusCode::kInvalidArgument);
}

// By a thread of this process, and by another one, which is told when to go on.
TEST_F(AtomicFileTest, WhatIsBeingWrittenIsNotTakenForWhatAKilledProcessLeft) {
  int begun[2], go_on[2];
  ASSERT_EQ(::pipe(begun), 0);
  ASSERT_EQ(::pipe(go_on), 0);
  const auto finish = [](Result<AtomicFile>& file) {
    return file.ok() && file->write(std::as_bytes(std::span("whole"))).ok() && file->commit().ok();
  };
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  char byte = 0;
  if (child == 0) {
    Result<AtomicFile> theirs = AtomicFile::create(path_, plain_);
    const bool told = ::write(begun[1], "", 1) == 1 && ::read(go_on[0], &byte, 1) == 1;
    ::_exit(told && finish(theirs) ? 0 : 1);
  }
  ASSERT_EQ(::read(begun[0], &byte, 1), 1);
  Result<AtomicFile> ours = AtomicFile::create(path_, plain_);
  ASSERT_TRUE(ours.ok());
  ASSERT_TRUE(save_version(path_, 2, plain_).ok());
  EXPECT_EQ(dir_.n_entries(), 3) << "the file, and both that are not done";
  EXPECT_TRUE(finish(ours));
  ASSERT_EQ(::write(go_on[1], "", 1), 1);
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  EXPECT_EQ(dir_.n_entries(), 1);
  for (const int end : {begun[0], begun[1], go_on[0], go_on[1]}) ::close(end);
}

// The number in a name says nothing: process 1 lives.
TEST_F(AtomicFileTest, OnlyPartFilesOfTheSameFileAreRemoved) {
  const std::string left = dir_.file("x.store.1-0.part");
  std::ofstream(left) << "half";
  const std::vector<std::string> others = {
      "y.store.1-0.part", "x.store.1-0.parts", "x.store.part",      "x.store.1-.part",
      "x.store.-1.part",  "x.store.a-1.part",  "x.store.1-0x.part", "ax.store.1-0.part",
      "x.store1-0.part",  ".1-0.part"};
  for (const std::string& name : others) std::ofstream(dir_.file(name)) << "whole";
  std::filesystem::create_directory(dir_.file("x.store.2-0.part"));
  std::filesystem::create_symlink(path_, dir_.file("x.store.3-0.part"));
  ASSERT_TRUE(save_version(path_, 2, plain_).ok());
  EXPECT_FALSE(std::filesystem::exists(left));
  for (const std::string& name : others) {
    EXPECT_TRUE(std::filesystem::exists(dir_.file(name))) << name;
  }
  EXPECT_EQ(dir_.n_entries(), static_cast<int>(others.size()) + 3);
}

// Somebody who removes what was left at the worst of times: before a part file has its lock, and
// when it is closed and does not have its name yet.
struct Cleaner : FileOps {
  int taken = 0;
  static void clean(const std::string& path) {
    remove_left_parts(std::filesystem::path(path).parent_path().string(),
                      [](std::string_view) { return true; });
  }
  int create(const std::string& path) override {
    const int file = FileOps::create(path);
    if (file >= 0 && taken++ < 3) clean(path);
    return file;
  }
  int rename(const std::string& from, const std::string& to) override {
    clean(from);
    return FileOps::rename(from, to);
  }
};

TEST_F(AtomicFileTest, APartFileThatWasTakenAwayIsMadeAnewAndOneThatIsHeldStaysToItsEnd) {
  Cleaner cleaner;
  ASSERT_TRUE(save_version(path_, 2, cleaner).ok());
  EXPECT_EQ(cleaner.taken, 4);
  EXPECT_EQ(version_of(path_), 2u);
  EXPECT_EQ(dir_.n_entries(), 1);
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

TEST_F(AtomicFileTest, WhatIsPrivateDoesNotTakeOverTheModeOfTheOldFile) {
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  PrivateFileOps ops;
  ASSERT_TRUE(save_version(path_, 7, ops).ok());
  struct stat info;
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(AtomicFileTest, ALinkToAFileThatIsNotThereYetIsFollowedAsWell) {
  const std::filesystem::path folder = dir_.file("elsewhere");
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink("elsewhere/first", dir_.file("link"));
  std::filesystem::create_symlink("second", folder / "first");
  ASSERT_TRUE(save_version(dir_.file("link"), 8, plain_).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(dir_.file("link")));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "first"));
  EXPECT_EQ(version_of((folder / "second").string()), 8u);
  EXPECT_EQ(file_to_replace(dir_.file("link")).value(), (folder / "second").string());
  EXPECT_EQ(file_to_replace(path_).value(), path_);
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
