#include "http/connection/connection_stream.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace outrider::http {
namespace {

constexpr std::size_t kBuffer = 16 << 10;
constexpr std::int32_t kLingerMs = 100;
constexpr std::size_t kLingerBytes = 1 << 20;

// Whether it becomes ready for `events`, or fails, within `ms`.
bool wait_for(socket_t socket, short events, double ms) {
  const Stopwatch watch;
  for (;;) {
    pollfd what{.fd = socket, .events = events, .revents = 0};
    const double left = std::max(0.0, ms - watch.elapsed_ms());
    const int ready = ::poll(&what, 1, static_cast<int>(left) + 1);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// Whether it is the head of a reply, which is written in one piece, with that header.
bool says_close(std::string_view bytes) {
  if (!bytes.starts_with("HTTP/1.1 ")) return false;
  return bytes.substr(0, bytes.find("\r\n\r\n") + 2).find("\r\nConnection: close\r\n") !=
         std::string_view::npos;
}

ssize_t receive(socket_t socket, char* to, std::size_t size) {
  for (;;) {
    const ssize_t n = ::recv(socket, to, size, 0);
    if (n >= 0 || errno != EINTR) return n;
  }
}

void name_end(const sockaddr_storage& address, socklen_t size, std::string& ip, int& port) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  const int failed =
      ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(), host.size(),
                    service.data(), service.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  if (failed != 0) return;
  ip = host.data();
  port = std::atoi(service.data());
}

}  // namespace

ConnectionStream::ConnectionStream(socket_t socket, std::int32_t read_ms, std::int32_t write_ms)
    : socket_(socket), read_ms_(read_ms), write_ms_(write_ms), buffer_(kBuffer) {}

bool ConnectionStream::wait_for_request(std::int32_t ms) {
  return is_readable() || wait_for(socket_, POLLIN, ms);
}

void ConnectionStream::begin_request() {
  in_head_ = true;
  written_ = false;
  said_close_ = false;
  received_ = end_ - begin_;  // may have come with the one before
  failure_ = Failure::kNone;
  request_.restart();
}

void ConnectionStream::end_head() {
  in_head_ = false;
  received_ = 0;
  request_.restart();
}

double ConnectionStream::ms_left() const {
  if (in_head_) return read_ms_ - request_.elapsed_ms();
  const double whole = read_ms_ + 1000.0 * static_cast<double>(received_) / kSlowestBody;
  return std::min<double>(read_ms_, whole - request_.elapsed_ms());
}

bool ConnectionStream::wait_readable() const {
  const double left = ms_left();
  return is_readable() || (left > 0.0 && wait_for(socket_, POLLIN, left));
}

bool ConnectionStream::wait_writable() const { return wait_for(socket_, POLLOUT, write_ms_); }

bool ConnectionStream::fill() {
  begin_ = 0;
  end_ = 0;
  if (in_head_ && received_ > kMaxHead) {
    failure_ = Failure::kTooLong;
  } else if (!wait_readable()) {
    failure_ = Failure::kTooSlow;
  } else {
    const ssize_t n = receive(socket_, buffer_.data(), buffer_.size());
    if (n > 0) {
      end_ = static_cast<std::size_t>(n);
      received_ += end_;
      return true;
    }
    failure_ = Failure::kClosed;
  }
  error_ =
      failure_ == Failure::kClosed ? httplib::Error::ConnectionClosed : httplib::Error::Timeout;
  return false;
}

ssize_t ConnectionStream::read(char* to, size_t size) {
  if (!is_readable() && !fill()) {
    if (in_head_ && failure_ == Failure::kTooSlow) throw LateHead();
    return failure_ == Failure::kClosed ? 0 : -1;
  }
  const std::size_t n = std::min(size, end_ - begin_);
  std::memcpy(to, buffer_.data() + begin_, n);
  begin_ += n;
  return static_cast<ssize_t>(n);
}

const char* ConnectionStream::buffered_data(size_t& size) const {
  size = end_ - begin_;
  return size > 0 ? buffer_.data() + begin_ : nullptr;
}

void ConnectionStream::consume_buffered(size_t size) {
  assert(size <= end_ - begin_);
  begin_ += size;
}

ssize_t ConnectionStream::write(const char* from, size_t size) {
  if (!wait_writable()) return -1;
  written_ = true;
  said_close_ = said_close_ || says_close({from, size});
  for (;;) {
    const ssize_t n = ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    // Ready, and then not: so little room that it does not count.
    if ((errno == EAGAIN || errno == EWOULDBLOCK) && wait_writable()) continue;
    return -1;
  }
}

void ConnectionStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  const SocketNames ends = names_of(socket_);
  ip = ends.remote;
  port = ends.remote_port;
}

void ConnectionStream::get_local_ip_and_port(std::string& ip, int& port) const {
  const SocketNames ends = names_of(socket_);
  ip = ends.local;
  port = ends.local_port;
}

SocketNames names_of(socket_t socket) {
  SocketNames ends;
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    name_end(address, size, ends.remote, ends.remote_port);
  }
  size = sizeof(address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    name_end(address, size, ends.local, ends.local_port);
  }
  return ends;
}

void write_and_close(socket_t socket, std::string_view bytes) {
  if (!bytes.empty()) {
    (void)::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  ::shutdown(socket, SHUT_WR);
  const Stopwatch watch;
  std::array<char, 4096> unread{};
  for (std::size_t all = 0; all < kLingerBytes;) {
    const double left = kLingerMs - watch.elapsed_ms();
    if (left <= 0.0 || !wait_for(socket, POLLIN, left)) break;
    const ssize_t n = receive(socket, unread.data(), unread.size());
    if (n <= 0) break;
    all += static_cast<std::size_t>(n);
  }
  ::close(socket);
}

}  // namespace outrider::http
