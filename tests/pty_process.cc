#include "tests/pty_process.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include <gtest/gtest.h>

#include "testing/eventually.h"

namespace outrider::testing {
namespace {

constexpr int kPatienceMs = 60'000;  // of one wait for something to be written
constexpr std::size_t kKeysAtOnce = 512;

// Of a shell: waits for its one job, which has the terminal while it runs.
[[noreturn]] void become_shell(const CliCall& call) {
  signal(SIGTTOU, SIG_IGN);  // it takes the terminal from behind
  const pid_t job = fork();
  if (job == 0) {
    setpgid(0, 0);
    tcsetpgrp(STDIN_FILENO, getpid());
    signal(SIGTTOU, SIG_DFL);
    become_cli(call);
  }
  setpgid(job, job);
  tcsetpgrp(STDIN_FILENO, job);
  int status = 0;
  while (waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
    tcsetpgrp(STDIN_FILENO, getpgrp());
    termios left{};
    const bool lines = tcgetattr(STDIN_FILENO, &left) == 0 && (left.c_lflag & ICANON) != 0 &&
                       (left.c_lflag & ECHO) != 0;
    dprintf(STDOUT_FILENO, "%s\n", lines ? "[stopped]" : "[stopped in raw mode]");
    std::array<char, 64> line{};
    if (read(STDIN_FILENO, line.data(), line.size()) <= 0) break;
    tcsetpgrp(STDIN_FILENO, job);
    kill(-job, SIGCONT);
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace

PtyProcess::PtyProcess(const CliCall& call, By by) {
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = 200;  // so that lines are not wrapped
  pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
  EXPECT_GE(pid_, 0);
  if (pid_ != 0) return;
  if (by == By::kShell) become_shell(call);
  become_cli(call);
}

PtyProcess::~PtyProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (terminal_ >= 0) close(terminal_);
}

// What a terminal cannot take at once is written while what the command says is read, so that
// neither waits for the other.
void PtyProcess::type(const std::string& keys) {
  std::size_t written = 0;
  while (written < keys.size()) {
    pollfd end = {.fd = terminal_, .events = POLLIN | POLLOUT, .revents = 0};
    const int ready = poll(&end, 1, kPatienceMs);
    ASSERT_TRUE(ready > 0 || errno == EINTR) << "the terminal takes no more keys:\n" << shown();
    if ((end.revents & POLLIN) != 0) read_more();
    if ((end.revents & POLLOUT) == 0) continue;
    const std::size_t some = std::min(keys.size() - written, kKeysAtOnce);
    const ssize_t n = write(terminal_, keys.data() + written, some);
    ASSERT_TRUE(n > 0 || errno == EINTR) << shown();
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

std::string PtyProcess::shown() const {
  constexpr std::size_t kMost = 4000;
  std::string text;
  for (const char c : screen_.substr(screen_.size() - std::min(screen_.size(), kMost))) {
    const unsigned char byte = static_cast<unsigned char>(c);
    const bool control = byte < 0x20 && c != '\n';
    text += control ? "^" + std::string(1, static_cast<char>(byte + '@')) : std::string(1, c);
  }
  return "the screen:\n" + text;
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
      ADD_FAILURE() << "'" << text << "' did not come; of it " << screen_.size() - seen_
                    << " bytes are new; " << shown();
      return "";
    }
  }
}

int PtyProcess::wait() {
  while (read_more()) {
  }
  const std::optional<int> status = wait_for_end();
  if (!status) {
    ADD_FAILURE() << "it does not end; " << shown();
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_ = -1;
  if (!status) return -SIGKILL;
  return WIFEXITED(*status) ? WEXITSTATUS(*status) : -WTERMSIG(*status);
}

// What waitpid() says of the command; nothing after a minute.
std::optional<int> PtyProcess::wait_for_end() {
  int status = 0;
  const bool ended = eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; });
  return ended ? std::optional(status) : std::nullopt;
}

void PtyProcess::resize(unsigned short rows, unsigned short columns) {
  winsize size = {};
  size.ws_row = rows;
  size.ws_col = columns;
  EXPECT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0);
}

}  // namespace outrider::testing
