// Real processes, all of them /bin/sh.
#include "remote/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "remote/channel.h"
#include "remote/host_program.h"

namespace outrider {
namespace {

std::unique_ptr<ChildProcess> shell(const std::string& script, std::vector<int> descriptors = {}) {
  Result<std::unique_ptr<ChildProcess>> child =
      ChildProcess::start("/bin/sh", {"sh", "-c", script}, descriptors);
  EXPECT_TRUE(child.ok()) << child.status().message();
  return child.ok() ? std::move(*child) : nullptr;
}

constexpr int kLong = 60'000;

TEST(ChildProcess, SaysHowItEndedAndWhatItSaidLast) {
  const std::unique_ptr<ChildProcess> good = shell("exit 0");
  ASSERT_TRUE(good->wait(kLong));
  EXPECT_TRUE(good->ended_well());
  EXPECT_EQ(good->last_lines(), "");
  const std::unique_ptr<ChildProcess> bad =
      shell("echo one >&2; echo two >&2; echo three >&2; printf 'four\\033[1m' >&2; exit 3");
  ASSERT_TRUE(bad->wait(kLong));
  EXPECT_FALSE(bad->ended_well());
  EXPECT_EQ(bad->ending(), "ended with exit code 3");
  EXPECT_EQ(bad->last_lines(), "two; three; four [1m") << "no escape sequences";
  const std::unique_ptr<ChildProcess> asserted = shell("echo /a/b/ggml.c:7: x/y is not 0 >&2");
  ASSERT_TRUE(asserted->wait(kLong));
  EXPECT_EQ(asserted->last_lines(), "ggml.c:7: x/y is not 0");
  const std::unique_ptr<ChildProcess> killed = shell("kill -KILL $$");
  ASSERT_TRUE(killed->wait(kLong));
  EXPECT_EQ(killed->ending().find("was killed by signal 9 ("), 0U) << killed->ending();
}

TEST(ChildProcess, WhatItWritesNeverBlocksIt) {
  const std::unique_ptr<ChildProcess> child = shell(
      "i=0; while [ $i -lt 3000 ]; do echo 'a line of some length, again and again, until a "
      "pipe would be full' >&2; i=$((i+1)); done; echo done >&2");
  ASSERT_TRUE(child->wait(kLong));
  EXPECT_TRUE(child->ended_well());
  EXPECT_TRUE(child->last_lines().ends_with("; done"));
}

TEST(ChildProcess, InheritsWhatItIsGivenAndNothingElse) {
  Result<std::pair<FileDescriptor, FileDescriptor>> ends = Channel::make_pair();
  ASSERT_TRUE(ends.ok());
  const std::unique_ptr<ChildProcess> child = shell(
      "printf hello >&3; for n in 4 5 6 7 8 9; do { true >&$n; } 2>/dev/null && exit 9; done;"
      " exit 0",
      {ends->second.get()});
  ends->second.reset();
  char text[6] = {};
  EXPECT_EQ(read(ends->first.get(), text, 5), 5);
  EXPECT_STREQ(text, "hello");
  EXPECT_EQ(read(ends->first.get(), text, 1), 0) << "closed with its end";
  ASSERT_TRUE(child->wait(kLong));
  EXPECT_EQ(child->ending(), "ended with exit code 0");
}

TEST(ChildProcess, IsKilledAndReapedWithItsObject) {
  std::unique_ptr<ChildProcess> child = shell("exec sleep 1000");
  const pid_t pid = child->pid();
  EXPECT_FALSE(child->wait(1));
  EXPECT_EQ(child->ending(), "is running");
  child.reset();
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcess, AProgramThatIsNotThereIsNamed) {
  const Status status = ChildProcess::start("/no/such/program", {"x"}, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("/no/such/program"), std::string::npos);
}

class InstalledHostProgram : public ::testing::Test {
 protected:
  ~InstalledHostProgram() override { std::filesystem::remove_all(root_); }

  std::string file(const std::string& path, bool executable) const {
    const std::filesystem::path made = root_ / path;
    std::filesystem::create_directories(made.parent_path());
    std::ofstream(made) << "#!/bin/sh\n";
    if (executable) std::filesystem::permissions(made, std::filesystem::perms::owner_all);
    return made.string();
  }
  // Of two paths with "..", whether they lead to one file.
  static bool same(const std::string& one, const std::string& other) {
    return !one.empty() && std::filesystem::equivalent(one, other);
  }

  const std::filesystem::path root_ =
      ::testing::TempDir() + "installed_program_" + std::to_string(getpid());
};

TEST_F(InstalledHostProgram, IsFoundWhereEachPackagePutsIt) {
  struct Package {
    const char* library;
    const char* command;
  };
  for (const Package& package :
       {Package{"wheel/outrider/liboutrider.so", "wheel/outrider/bin/outrider"},
        Package{"prefix/lib/liboutrider.so", "prefix/bin/outrider"},
        Package{"deb/usr/lib/x86_64-linux-gnu/liboutrider.so.0.1", "deb/usr/bin/outrider"},
        Package{"checkout/build/liboutrider.so", "checkout/build/outrider"}}) {
    const std::string library = file(package.library, /*executable=*/false);
    EXPECT_EQ(host_program_near(library), "") << package.library;
    const std::string command = file(package.command, /*executable=*/true);
    EXPECT_TRUE(same(host_program_near(library), command)) << host_program_near(library);
  }
}

TEST_F(InstalledHostProgram, IsNoFileThatCannotBeRun) {
  const std::string library = file("wheel/outrider/liboutrider.so", /*executable=*/false);
  file("wheel/outrider/bin/outrider", /*executable=*/false);
  EXPECT_EQ(host_program_near(library), "");
}

TEST(HostProgram, TheVariableWinsAndMustNameAProgram) {
  setenv("OUTRIDER_HOST_PROGRAM", "/bin/sh", 1);
  EXPECT_EQ(*find_host_program(), "/bin/sh");
  setenv("OUTRIDER_HOST_PROGRAM", "/no/such/program", 1);
  EXPECT_EQ(find_host_program().status().code(), StatusCode::kNotFound);
  unsetenv("OUTRIDER_HOST_PROGRAM");
  const char* before = std::getenv("PATH");
  const std::string path = before != nullptr ? before : "";
  setenv("PATH", "relative::/no/such/folder", 1);
  const Status status = find_host_program().status();
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("OUTRIDER_HOST_PROGRAM"), std::string::npos);
}

}  // namespace
}  // namespace outrider
