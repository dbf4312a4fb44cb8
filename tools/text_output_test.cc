#include "tools/text_output.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <thread>

namespace outrider::tools {
namespace {

class TextOutputOnAPipe : public ::testing::Test {
 protected:
  TextOutputOnAPipe() {
    EXPECT_EQ(pipe(ends_.data()), 0);
    std::signal(SIGPIPE, SIG_IGN);
  }
  ~TextOutputOnAPipe() override {
    std::signal(SIGPIPE, SIG_DFL);
    close_end(0);
    close_end(1);
  }

  void close_end(std::size_t end) {
    if (ends_.at(end) >= 0) close(ends_.at(end));
    ends_.at(end) = -1;
  }

  // All that comes until the pipe is closed.
  std::string read_all() const {
    std::string all;
    std::array<char, 4096> part{};
    for (ssize_t n = 0; (n = read(ends_[0], part.data(), part.size())) > 0;) {
      all.append(part.data(), static_cast<std::size_t>(n));
    }
    return all;
  }

  std::array<int, 2> ends_{-1, -1};
};

TEST_F(TextOutputOnAPipe, WaitsForRoomWhereAnotherProcessHasMadeItNotWait) {
  ASSERT_EQ(fcntl(ends_[1], F_SETFL, fcntl(ends_[1], F_GETFL) | O_NONBLOCK), 0);
  const std::string text(std::size_t{1} << 20, 'a');  // a pipe holds 64 KiB
  std::string got;
  std::thread reader([&] { got = read_all(); });
  TextOutput out(ends_[1], /*color=*/false);
  out.write(text);
  EXPECT_TRUE(out.status().ok()) << out.status().message();
  EXPECT_FALSE(out.failed());
  close_end(1);
  reader.join();
  EXPECT_EQ(got, text);
}

TEST_F(TextOutputOnAPipe, AReaderThatHasGoneEndsItWithoutAnError) {
  close_end(0);
  TextOutput out(ends_[1], /*color=*/false);
  out.write("text");
  EXPECT_TRUE(out.failed());
  EXPECT_TRUE(out.status().ok());
}

TEST(TextOutput, WhatCannotBeWrittenToIsAnError) {
  const int null = open("/dev/null", O_RDONLY);
  ASSERT_GE(null, 0);
  TextOutput out(null, /*color=*/false);
  out.write("text");
  close(null);
  EXPECT_TRUE(out.failed());
  EXPECT_FALSE(out.status().ok());
}

}  // namespace
}  // namespace outrider::tools
