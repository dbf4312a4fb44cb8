#include "tools/line_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace outrider::tools {

LineReader::LineReader(int descriptor, std::size_t max_bytes)
    : descriptor_(descriptor), max_bytes_(max_bytes) {
  if (pipe(wake_) != 0) {
    status_ = internal_error(std::string("cannot make a pipe: ") + std::strerror(errno));
    ended_ = true;
    return;
  }
  for (const int end : wake_) fcntl(end, F_SETFD, FD_CLOEXEC);
}

LineReader::~LineReader() {
  for (const int end : wake_) {
    if (end >= 0) close(end);
  }
}

void LineReader::interrupt() {
  const char byte = 0;
  while (write(wake_[1], &byte, 1) < 0 && errno == EINTR) {
  }
}

// Reads more; false when there is nothing more to come.
bool LineReader::fill() {
  char chunk[65536];
  for (;;) {
    pollfd waits[2] = {{.fd = descriptor_, .events = POLLIN, .revents = 0},
                       {.fd = wake_[0], .events = POLLIN, .revents = 0}};
    if (poll(waits, 2, -1) < 0) {
      if (errno == EINTR) continue;
      status_ =
          internal_error(std::string("cannot wait for standard input: ") + std::strerror(errno));
      break;
    }
    if (waits[1].revents != 0) {
      interrupted_ = true;
      return false;
    }
    const ssize_t n = read(descriptor_, chunk, sizeof(chunk));
    if (n > 0) {
      buffer_.append(chunk, static_cast<std::size_t>(n));
      return true;
    }
    if (n == 0) break;
    if (errno == EINTR || errno == EAGAIN) continue;
    status_ = internal_error(std::string("cannot read standard input: ") + std::strerror(errno));
    break;
  }
  ended_ = true;
  return false;
}

LineReader::Kind LineReader::next(std::string& line) {
  bool too_long = false;
  std::size_t searched = 0;
  for (;;) {
    const std::size_t newline = buffer_.find('\n', searched);
    if (newline != std::string::npos) {
      too_long = too_long || newline > max_bytes_;
      line = too_long ? std::string() : buffer_.substr(0, newline);
      buffer_.erase(0, newline + 1);
      return too_long ? Kind::kTooLong : Kind::kLine;
    }
    if (buffer_.size() > max_bytes_) {  // what belongs to it is passed over as it comes
      too_long = true;
      buffer_.clear();
    }
    searched = buffer_.size();
    if (interrupted_) return Kind::kInterrupted;
    if (!ended_ && fill()) continue;
    if (interrupted_) return Kind::kInterrupted;
    if (too_long) return Kind::kTooLong;
    if (buffer_.empty()) return Kind::kEnd;
    line.swap(buffer_);
    buffer_.clear();
    return Kind::kLine;
  }
}

}  // namespace outrider::tools
