#include "tools/line_reader.h"

#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace outrider::tools {
namespace {

// A pipe with `text` in it, its writing end closed unless it is to stay open.
class Input {
 public:
  explicit Input(const std::string& text, bool keep_open = false) {
    EXPECT_EQ(pipe(ends_), 0);
    EXPECT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    if (!keep_open) close_writing();
  }
  ~Input() {
    close(ends_[0]);
    close_writing();
  }
  int reading() const { return ends_[0]; }
  void add(const std::string& text) {
    EXPECT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

 private:
  void close_writing() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  int ends_[2] = {-1, -1};
};

// "a|b|" for the lines a and b and the end; "!" for one that is too long.
std::string read_all(const std::string& text, std::size_t max_bytes) {
  const Input input(text);
  LineReader reader(input.reading(), max_bytes);
  std::string all;
  std::string line;
  for (;;) {
    const LineReader::Kind kind = reader.next(line);
    if (kind == LineReader::Kind::kEnd) return all;
    all += (kind == LineReader::Kind::kTooLong ? "!" : line) + "|";
  }
}

TEST(LineReader, GivesLinesAndTheLastOneWithoutItsNewline) {
  EXPECT_EQ(read_all("", 9), "");
  EXPECT_EQ(read_all("a\nbc\n", 9), "a|bc|");
  EXPECT_EQ(read_all("a\n\nbc", 9), "a||bc|");
}

TEST(LineReader, PassesOverLinesThatAreTooLong) {
  EXPECT_EQ(read_all("abcd\nabcde\nx\n", 4), "abcd|!|x|");
  EXPECT_EQ(read_all("abcde", 4), "!|");
  EXPECT_EQ(read_all(std::string(60'000, 'a') + "\nx", 4), "!|x|");
}

TEST(LineReader, CanBeInterruptedWhileItWaits) {
  const Input input("a\nbc", /*keep_open=*/true);
  LineReader reader(input.reading(), 9);
  std::string line;
  EXPECT_EQ(reader.next(line), LineReader::Kind::kLine);
  std::thread other([&reader] { reader.interrupt(); });
  EXPECT_EQ(reader.next(line), LineReader::Kind::kInterrupted) << "bc may go on";
  EXPECT_EQ(reader.next(line), LineReader::Kind::kInterrupted);
  other.join();
  EXPECT_TRUE(reader.status().ok());
}

TEST(LineReader, GoesOnAfterAnInterruptionWithoutWhatWasBegun) {
  Input input("a\nbc", /*keep_open=*/true);
  LineReader reader(input.reading(), 9);
  std::string line;
  EXPECT_EQ(reader.next(line), LineReader::Kind::kLine);
  for (int i = 0; i < 3; ++i) reader.interrupt();
  EXPECT_EQ(reader.next(line), LineReader::Kind::kInterrupted);
  reader.resume();
  input.add("d\n");
  EXPECT_EQ(reader.next(line), LineReader::Kind::kLine);
  EXPECT_EQ(line, "d") << "bc is forgotten, and so are all three interruptions";
}

}  // namespace
}  // namespace outrider::tools
