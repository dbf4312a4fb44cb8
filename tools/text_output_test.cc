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

TEST_F(TextOutputOnAPipe, ACharacterOverTwoTokensKeepsTheColourThatItBeganWith) {
  const std::string euro = "\xE2\x82\xAC";
  const std::string green = "\033[32m";
  TextOutput out(ends_[1], /*color=*/true);
  out.write(std::vector<SaidToken>{{.text = "a\xE2", .by = "target"},
                                   {.text = "\x82", .by = "draft-model"}});
  out.write(std::vector<SaidToken>{{.text = "\xAC", .by = "draft-model"},
                                   {.text = "b\xE2\x82", .by = "draft-model"}});
  out.write(
      std::vector<SaidToken>{{.text = "\xAC", .by = "target"}, {.text = "c", .by = "target"}});
  // One that stays cut, and bytes that are none.
  out.write(std::vector<SaidToken>{{.text = "\xE2", .by = "target"},
                                   {.text = "d\x82", .by = "draft-model"},
                                   {.text = "\x82", .by = "target"},
                                   {.text = "\xE2", .by = "draft-model"}});
  out.finish();
  close_end(1);
  const std::string usual = "\033[0m";
  EXPECT_EQ(read_all(), "a" + euro + green + "b" + euro + usual + "c\xE2" + green + "d\x82" +
                            usual + "\x82" + green + "\xE2" + usual);
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
