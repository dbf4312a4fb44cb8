#include "tools/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace outrider::tools {
namespace {

// In a child of a death test. Which bits of the code say what was wrong.
[[noreturn]] void with_closed(int stream) {
  close(stream);
  open_closed_streams();
  const int next = open("/dev/zero", O_RDWR);
  int wrong = next <= STDERR_FILENO ? 1 : 0;
  char byte = 0;
  if (stream == STDIN_FILENO && read(stream, &byte, 1) >= 0) wrong |= 2;
  if (stream != STDIN_FILENO && write(stream, &byte, 1) >= 0) wrong |= 4;
  if (fcntl(stream, F_GETFD) < 0) wrong |= 8;
  _exit(wrong);
}

TEST(StandardStreamsDeath, AFileThatIsOpenedNextIsNeverAStandardStreamThatWasClosed) {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    EXPECT_EXIT(with_closed(stream), ::testing::ExitedWithCode(0), "") << stream;
  }
}

}  // namespace
}  // namespace outrider::tools
