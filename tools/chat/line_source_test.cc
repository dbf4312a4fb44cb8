#include "tools/chat/line_source.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "tools/paste.h"

namespace outrider::tools {
namespace {

constexpr std::size_t kAnyLine = 1000;

// Standard input, and where asked standard error, are a terminal.
class PlainLinesOnATerminal : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("TERM", "xterm", 1);
    ASSERT_EQ(openpty(&screen_, &terminal_, nullptr, nullptr, nullptr), 0);
    for (const int descriptor : {STDIN_FILENO, STDERR_FILENO})
      before_[descriptor] = dup(descriptor);
    ASSERT_EQ(dup2(terminal_, STDIN_FILENO), STDIN_FILENO);
    ASSERT_EQ(dup2(terminal_, STDERR_FILENO), STDERR_FILENO);
  }
  void TearDown() override {
    for (const int descriptor : {STDIN_FILENO, STDERR_FILENO}) {
      dup2(before_[descriptor], descriptor);
      close(before_[descriptor]);
    }
    close(terminal_);
    close(screen_);
  }

  void type(const std::string& keys) const {
    EXPECT_EQ(write(screen_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  // What it shows, up to `end`.
  std::string shown_until(const std::string& end) {
    std::string shown;
    pollfd next{.fd = screen_, .events = POLLIN, .revents = 0};
    while (shown.find(end) == std::string::npos && poll(&next, 1, 60'000) == 1) {
      char byte = '\0';
      if (read(screen_, &byte, 1) == 1) shown += byte;
    }
    return shown;
  }
  static bool shows_control_characters() {
    termios now{};
    return tcgetattr(STDIN_FILENO, &now) == 0 && (now.c_lflag & ECHOCTL) != 0;
  }

  int screen_ = -1;
  int terminal_ = -1;
  std::array<int, 3> before_{};
};

std::atomic<int> stopped_with_marks{-1};  // what the shell would find

void note_stop(int /*number*/) {
  termios now{};
  tcgetattr(STDIN_FILENO, &now);
  stopped_with_marks.store((now.c_lflag & ECHOCTL) == 0 ? 1 : 0);
}

TEST_F(PlainLinesOnATerminal, WhoStopsTheProcessGetsTheTerminalAsItWas) {
  ASSERT_TRUE(shows_control_characters());
  const auto usual = std::signal(SIGTSTP, note_stop);  // in place of stopping
  const std::unique_ptr<LineSource> lines = plain_lines(kAnyLine);
  std::string line;
  std::thread reader([&] { EXPECT_EQ(lines->next("> ", line), LineSource::Kind::kLine); });
  EXPECT_EQ(shown_until(kPasteMarksOn), std::string("> ") + kPasteMarksOn);
  EXPECT_FALSE(shows_control_characters());
  lines->handle(SIGTSTP);
  EXPECT_EQ(stopped_with_marks.load(), 0);
  EXPECT_FALSE(shows_control_characters()) << "it goes on";
  EXPECT_EQ(shown_until(kPasteMarksOn), std::string(kPasteMarksOff) + kPasteMarksOn);
  type("one\n");
  reader.join();
  EXPECT_EQ(line, "one");
  EXPECT_TRUE(shows_control_characters());
  std::signal(SIGTSTP, usual);
}

TEST_F(PlainLinesOnATerminal, WhoDiesGivesItBackAndTheNextLineHasTheMarksAgain) {
  const std::unique_ptr<LineSource> lines = plain_lines(kAnyLine);
  for (int i = 0; i < 2; ++i) {
    std::thread reader([&] {
      std::string line;
      EXPECT_EQ(lines->next("> ", line), LineSource::Kind::kLine);
    });
    shown_until(kPasteMarksOn);
    EXPECT_FALSE(shows_control_characters());
    lines->give_back();
    EXPECT_TRUE(shows_control_characters());
    shown_until(kPasteMarksOff);
    type("one\n");
    reader.join();
  }
}

TEST_F(PlainLinesOnATerminal, NoMarksAreWrittenToWhatIsNoTerminal) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  ASSERT_EQ(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
  const std::unique_ptr<LineSource> lines = plain_lines(kAnyLine);
  type("one\n");
  std::string line;
  EXPECT_EQ(lines->next("> ", line), LineSource::Kind::kLine);
  EXPECT_EQ(line, "one");
  std::array<char, 100> told{};
  EXPECT_EQ(read(ends[0], told.data(), told.size()), 2) << "the prompt alone";
  for (const int end : ends) close(end);
}

TEST(PlainLines, OfAFileTheMarkOfUtf8InFrontIsNoTextButLaterOnesAre) {
  const std::string mark = "\xEF\xBB\xBF";
  const std::string text = mark + "/help\n" + mark + "two\n";
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const int before = dup(STDIN_FILENO);
  ASSERT_EQ(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
  EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  const std::unique_ptr<LineSource> lines = plain_lines(kAnyLine);
  std::string line;
  EXPECT_EQ(lines->next("> ", line), LineSource::Kind::kLine);
  EXPECT_EQ(line, "/help");
  EXPECT_EQ(lines->next("> ", line), LineSource::Kind::kLine);
  EXPECT_EQ(line, mark + "two");
  dup2(before, STDIN_FILENO);
  for (const int end : {before, ends[0], ends[1]}) close(end);
}

}  // namespace
}  // namespace outrider::tools
