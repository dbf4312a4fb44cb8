#include "tests/pty_process.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <gtest/gtest.h>

namespace outrider::testing {
namespace {

constexpr int kPatienceMs = 300'000;  // of one wait for something to be written

}  // namespace

PtyProcess::PtyProcess(const CliCall& call) {
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = 200;  // so that lines are not wrapped
  pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
  EXPECT_GE(pid_, 0);
  if (pid_ == 0) become_cli(call);
}

PtyProcess::~PtyProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (terminal_ >= 0) close(terminal_);
}

void PtyProcess::type(const std::string& keys) {
  std::size_t written = 0;
  while (written < keys.size()) {
    const ssize_t n = write(terminal_, keys.data() + written, keys.size() - written);
    ASSERT_TRUE(n > 0 || errno == EINTR) << screen_;
    if (n > 0) written += static_cast<std::size_t>(n);
  }
}

// False when nothing more comes: the command has ended, or takes too long.
bool PtyProcess::read_more() {
  pollfd end = {.fd = terminal_, .events = POLLIN, .revents = 0};
  if (poll(&end, 1, kPatienceMs) <= 0) return false;
  std::array<char, 65536> block;
  const ssize_t n = read(terminal_, block.data(), block.size());
  if (n <= 0) return false;  // a terminal says EIO
  screen_.append(block.data(), static_cast<std::size_t>(n));
  return true;
}

std::string PtyProcess::expect(const std::string& text) {
  for (;;) {
    const std::size_t at = screen_.find(text, seen_);
    if (at != std::string::npos) {
      const std::size_t from = seen_;
      seen_ = at + text.size();
      return screen_.substr(from, seen_ - from);
    }
    if (!read_more()) {
      ADD_FAILURE() << "'" << text << "' did not come; there is:\n" << screen_.substr(seen_);
      return "";
    }
  }
}

int PtyProcess::wait() {
  while (read_more()) {
  }
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace outrider::testing
