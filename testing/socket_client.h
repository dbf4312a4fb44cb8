// SocketClient: a TCP connection to a port of this machine, for tests of servers: it sends any
// bytes, in any pieces, and reads when it is told to, which no well-behaved client would do.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace outrider::testing {

// A response of HTTP, read as far as tests need it.
struct RawReply {
  int status = 0;  // 0: none came
  std::string head;
  std::string body;  // of a chunked one with the chunks' sizes
};

class SocketClient {
 public:
  // `receive_bytes`: of the system's buffer; 0: as it is. connected() says whether it worked.
  explicit SocketClient(std::int32_t port, int receive_bytes = 0) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_bytes > 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~SocketClient() { close(); }
  SocketClient(SocketClient&& from) noexcept
      : socket_(std::exchange(from.socket_, -1)), connected_(from.connected_) {}
  SocketClient& operator=(SocketClient&& from) noexcept {
    std::swap(socket_, from.socket_);
    connected_ = from.connected_;
    closed_ = from.closed_;
    return *this;
  }

  bool connected() const { return connected_; }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  // What comes within `ms`, at most until the other end closes; waits for nothing once there is
  // `enough`.
  std::string read(std::int64_t ms, std::size_t enough = static_cast<std::size_t>(-1)) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(ms);
    std::string all;
    std::array<char, 16384> part{};
    while (!closed_ && all.size() < enough) {
      const std::int64_t left =
          std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
      if (left < 0 || !wait(POLLIN, left)) break;
      const ssize_t n = ::recv(socket_, part.data(), part.size(), 0);
      if (n <= 0) {
        closed_ = true;
      } else {
        all.append(part.data(), static_cast<std::size_t>(n));
      }
    }
    return all;
  }
  // Once what is there, or comes within `ms`: at most `most` bytes of it, as a slow client reads.
  std::string read_some(std::int64_t ms, std::size_t most) {
    if (closed_ || !wait(POLLIN, ms)) return "";
    std::string part(most, '\0');
    const ssize_t n = ::recv(socket_, part.data(), part.size(), 0);
    closed_ = n <= 0;
    part.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return part;
  }
  bool closed() const { return closed_; }  // by the other end, as far as it was read

  // One response; the connection may be used again. For those with a length or an end.
  RawReply reply(std::int64_t ms = 60'000) {
    std::string all = read(ms, 1);
    std::size_t body = std::string::npos;
    while (!done(all, body)) {
      const std::string more = read(ms, 1);
      if (more.empty()) break;
      all += more;
    }
    RawReply got;
    if (!all.starts_with("HTTP/1.1 ") || body == std::string::npos) return got;
    got.status = std::atoi(all.c_str() + 9);
    got.head = all.substr(0, body);
    got.body = all.substr(body);
    return got;
  }

  RawReply ask(std::string_view method, std::string_view path, std::string_view body = "",
               std::string_view headers = "") {
    return send(request(method, path, body, headers)) ? reply() : RawReply{};
  }

  // `headers`: lines, each with \r\n.
  static std::string request(std::string_view method, std::string_view path,
                             std::string_view body = "", std::string_view headers = "") {
    std::string all;
    all.append(method).append(" ").append(path).append(" HTTP/1.1\r\nHost: localhost\r\n");
    all.append(headers).append("Content-Length: ").append(std::to_string(body.size()));
    return all.append("\r\n\r\n").append(body);
  }

  // Sends no more, and may read on.
  void end() { ::shutdown(socket_, SHUT_WR); }

  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

 private:
  bool wait(short events, std::int64_t ms) const {
    pollfd what{.fd = socket_, .events = events, .revents = 0};
    return ::poll(&what, 1, static_cast<int>(ms)) > 0;
  }

  // Whether `all` is a whole response; `body`: where that begins.
  static bool done(const std::string& all, std::size_t& body) {
    const std::size_t end = all.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    body = end + 4;
    std::string head = all.substr(0, body);
    std::transform(head.begin(), head.end(), head.begin(), [](unsigned char c) {
      return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    });
    if (head.find("transfer-encoding: chunked") != std::string::npos) {
      return all.ends_with("\r\n0\r\n\r\n");
    }
    const std::size_t length = head.find("content-length: ");
    if (length == std::string::npos) return head.find(" 204 ") != std::string::npos;
    return all.size() >= body + std::stoul(head.substr(length + 16));
  }

  int socket_ = -1;
  bool connected_ = false;
  bool closed_ = false;
};

}  // namespace outrider::testing
