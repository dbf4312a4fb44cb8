#include "remote/host_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

namespace outrider {
namespace {

void close_from(int first) {
#if defined(__linux__) && defined(SYS_close_range)
  if (syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) return;
#endif
  constexpr long kMany = 65536;
  const long end = std::clamp(sysconf(_SC_OPEN_MAX), 256L, kMany);
  for (long number = first; number < end; ++number) close(static_cast<int>(number));
}

void settle_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

Status HostProcess::check(int channel, int memory) {
  for (const int descriptor : {channel, memory}) {
    if (descriptor > STDERR_FILENO && fcntl(descriptor, F_GETFD) >= 0) continue;
    return invalid_argument("descriptor " + std::to_string(descriptor) + " is not open");
  }
  return Status();
}

HostProcess::HostProcess(int channel, int memory) : parent_id_(getppid()) {
  settle_signals();
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  static_cast<void>(setrlimit(RLIMIT_CORE, &no_core));
  close_from(std::max(channel, memory) + 1);
  for (const int descriptor : {channel, memory}) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) return;  // then the parent's end is seen when it is next waited for
  over_read_ = FileDescriptor(ends[0]);
  over_write_ = FileDescriptor(ends[1]);
  parent_ = FileDescriptor(fcntl(channel, F_DUPFD_CLOEXEC, 0));
  if (parent_.valid()) thread_ = std::thread([this] { watch(); });
}

HostProcess::~HostProcess() {
  over_write_.reset();
  if (thread_.joinable()) thread_.join();
}

void HostProcess::watch() {
  // A copy of the parent, forked without exec, has its end of the channel, too, and may live
  // longer.
  constexpr int kLookMs = 1'000;
  while (true) {
    std::array<pollfd, 2> ends{{{.fd = parent_.get(), .events = 0, .revents = 0},
                                {.fd = over_read_.get(), .events = 0, .revents = 0}}};
    const int n = poll(ends.data(), ends.size(), kLookMs);
    if (getppid() != parent_id_) std::_Exit(EXIT_FAILURE);
    if (n <= 0) continue;
    if (ends[1].revents != 0) return;
    if (ends[0].revents != 0) std::_Exit(EXIT_FAILURE);
  }
}

}  // namespace outrider
