#include "tools/text_output.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <pty.h>
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

TEST_F(TextOutputOnAPipe, KeepsEveryByte) {
  TextOutput out(ends_[1], /*color=*/false);
  const std::string text =
      "a\033]0;x\ab\r\n\xC2\x9B"
      "1A\xFF";
  out.write(std::vector<SaidToken>{{.text = text, .by = "target"}});
  close_end(1);
  EXPECT_EQ(read_all(), text);
}

TEST(TextOutput, OnATerminalTokensHoldNoEscapeSequencesButItsOwnColours) {
  int screen = -1;
  int terminal = -1;
  ASSERT_EQ(openpty(&screen, &terminal, nullptr, nullptr, nullptr), 0);
  TextOutput out(terminal, /*color=*/true);
  out.write(std::vector<SaidToken>{{.text = "a\033]0;x\ab", .by = "draft-model"},
                                   {.text = "\xC2\r", .by = "target"},
                                   {.text = "\x9B"
                                            "1A",
                                    .by = "draft-model"}});
  out.write_thought("\033[2Jc");
  out.finish();
  close(terminal);
  std::string all;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = read(screen, part.data(), part.size())) > 0;) {  // until EIO
    all.append(part.data(), static_cast<std::size_t>(n));
  }
  close(screen);
  const std::string shown = "\xEF\xBF\xBD";
  EXPECT_EQ(all, "\033[32ma" + shown + "]0;x" + shown + "b\033[0m\xC2\033[32m" + shown +
                     "1A\033[0;2m" + shown + "[2Jc\033[0m\r\n");
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
