#include "input/prompt_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

namespace outrider {
namespace {

// A pipe that is open at both ends: nothing is to be read, and more may come.
class ReadAll : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(ends_), 0); }
  void TearDown() override {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  void say(const std::string& text) {
    ASSERT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void end() {
    close(ends_[1]);
    ends_[1] = -1;
  }
  int read_end() const { return ends_[0]; }
  std::string path() const { return "/dev/fd/" + std::to_string(ends_[0]); }

  std::atomic<bool> stop_ = false;

 private:
  int ends_[2] = {-1, -1};
};

TEST_F(ReadAll, APipeIsReadToItsEndAlsoBySomeoneWhoMayBeStopped) {
  say("first");
  std::thread other([this] {
    say(" and second");
    end();
  });
  const Result<std::string> text = read_all(path(), {.interrupt = &stop_});
  other.join();
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "first and second");
}

TEST_F(ReadAll, WhoWaitsForAPipeCanBeStopped) {
  say("first");
  std::thread other([this] { stop_.store(true); });
  EXPECT_EQ(read_all(path(), {.interrupt = &stop_}).status().code(), StatusCode::kCancelled);
  other.join();
}

// The test's standard input, of which another process would have the other end.
TEST_F(ReadAll, WaitsForStandardInputThatAnotherProcessHasMadeItNotWaitFor) {
  const int before = dup(STDIN_FILENO);
  ASSERT_EQ(fcntl(read_end(), F_SETFL, fcntl(read_end(), F_GETFL) | O_NONBLOCK), 0);
  ASSERT_EQ(dup2(read_end(), STDIN_FILENO), STDIN_FILENO);
  say("first");
  std::thread other([this] {
    // Until all was read, and a little longer: nothing is there when it is looked for again.
    for (int unread = 1; unread > 0;) ASSERT_EQ(ioctl(read_end(), FIONREAD, &unread), 0);
    usleep(20'000);
    say(" and second");
    end();
  });
  const Result<std::string> text = read_all("-");
  other.join();
  if (before >= 0) {
    dup2(before, STDIN_FILENO);
    close(before);
  } else {
    close(STDIN_FILENO);
  }
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "first and second");
}

TEST_F(ReadAll, MistakesNameTheFile) {
  EXPECT_EQ(read_all("/no/such").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(read_all("/").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace outrider
