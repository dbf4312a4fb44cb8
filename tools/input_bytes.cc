#include "tools/input_bytes.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace outrider::tools {

InputBytes::InputBytes(int descriptor) : descriptor_(descriptor) {
  if (pipe(wake_) != 0) {
    fail("make a pipe");
    return;
  }
  for (const int end : wake_) {
    fcntl(end, F_SETFD, FD_CLOEXEC);
    fcntl(end, F_SETFL, O_NONBLOCK);
  }
}

InputBytes::~InputBytes() {
  for (const int end : wake_) {
    if (end >= 0) close(end);
  }
}

InputBytes::Kind InputBytes::fail(const char* what) {
  status_ = internal_error(std::string("cannot ") + what + ": " + std::strerror(errno));
  ended_ = true;
  return Kind::kEnd;
}

void InputBytes::wake() {
  const char byte = 0;  // where the pipe is full, it wakes as it is
  while (write(wake_[1], &byte, 1) < 0 && errno == EINTR) {
  }
}

void InputBytes::interrupt() {
  interrupted_.store(true);
  wake();
}

void InputBytes::poke() {
  poked_.store(true);
  wake();
}

void InputBytes::resume() { interrupted_.store(false); }

InputBytes::Kind InputBytes::read(std::span<char> into, std::size_t& n) {
  n = 0;
  while (!ended_) {
    std::array<pollfd, 2> waits = {pollfd{.fd = descriptor_, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = wake_[0], .events = POLLIN, .revents = 0}};
    if (poll(waits.data(), waits.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return fail("wait for standard input");
    }
    if (waits[1].revents != 0) {  // emptied first: what wakes from now on is seen next time
      std::array<char, 64> bytes;
      while (::read(wake_[0], bytes.data(), bytes.size()) > 0) {
      }
    }
    if (interrupted_.load()) return Kind::kInterrupted;
    if (poked_.exchange(false)) return Kind::kPoked;
    if (waits[0].revents == 0) continue;
    const ssize_t got = ::read(descriptor_, into.data(), into.size());
    if (got > 0) {
      n = static_cast<std::size_t>(got);
      return Kind::kBytes;
    }
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return fail("read standard input");
    ended_ = true;
  }
  return Kind::kEnd;
}

}  // namespace outrider::tools
