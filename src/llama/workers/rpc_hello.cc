// Whether a worker is there and speaks our version of ggml's protocol: as ggml's client asks, but
// with a limit of time, and an error instead of an abort (ggml-rpc.cpp, negotiate_hello).
//
//      request:  command u8 | size u64 | 24 bytes of what the client can (nothing: plain TCP)
//      answer:   size u64 | major, minor, patch, 0 | 24 bytes of what the server can
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "ggml-rpc.h"
#include "llama/workers/rpc_worker.h"

namespace outrider::llama {
namespace {

constexpr std::uint8_t kHelloCommand = 14;  // "must be always 14"
constexpr std::size_t kCapabilities = 24;   // RPC_CONN_CAPS_SIZE
constexpr std::size_t kAnswer = 4 + kCapabilities;
constexpr int kLookMs = 20;  // how often the cancel flag is looked at

class Connection {
 public:
  Connection(const WorkerAddress& worker, const std::atomic<bool>* cancel)
      : worker_(worker), cancel_(cancel) {}
  // Shut down, and not just closed: a child that was forked meanwhile has the socket as well, and
  // the worker, which has one client at a time, would stay with it.
  ~Connection() {
    if (socket_ < 0) return;
    shutdown(socket_, SHUT_RDWR);
    close(socket_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Status connect(int timeout_ms);
  Status hello(int timeout_ms);

 private:
  using Clock = std::chrono::steady_clock;

  Status wait_for(short events, Clock::time_point end, const char* what);
  Status check_version(const std::uint8_t* answer) const;
  std::string name() const { return "the worker " + worker_.text() + " "; }

  const WorkerAddress& worker_;
  const std::atomic<bool>* cancel_;
  int socket_ = -1;
};

Status Connection::wait_for(short events, Clock::time_point end, const char* what) {
  while (true) {
    if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) {
      return cancelled("connecting to " + name() + "was cancelled");
    }
    if (Clock::now() >= end) return not_found(name() + what);
    pollfd ready{.fd = socket_, .events = events, .revents = 0};
    if (poll(&ready, 1, kLookMs) > 0) return Status();
  }
}

Status Connection::connect(int timeout_ms) {
  addrinfo wanted = {};
  wanted.ai_family = AF_INET;  // ggml's client knows no other
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(worker_.port);
  const int error = getaddrinfo(worker_.host.c_str(), port.c_str(), &wanted, &found);
  if (error != 0 || found == nullptr) {
    return not_found(name() + "cannot be reached: " + gai_strerror(error));
  }
  sockaddr_in address = {};
  std::memcpy(&address, found->ai_addr, sizeof address);
  freeaddrinfo(found);
#if defined(SOCK_CLOEXEC)
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);  // no moment without it
#else
  socket_ = socket(AF_INET, SOCK_STREAM, 0);
  if (socket_ >= 0) fcntl(socket_, F_SETFD, FD_CLOEXEC);
#endif
  if (socket_ < 0) return resource_exhausted(std::string("no socket: ") + std::strerror(errno));
  fcntl(socket_, F_SETFL, O_NONBLOCK);
  int failure = 0;
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    failure = errno;
    if (failure == EINPROGRESS) {
      const Clock::time_point end = Clock::now() + std::chrono::milliseconds(timeout_ms);
      OUTRIDER_RETURN_IF_ERROR(wait_for(POLLOUT, end, "cannot be reached: no answer in time"));
      socklen_t size = sizeof failure;
      getsockopt(socket_, SOL_SOCKET, SO_ERROR, &failure, &size);
    }
  }
  if (failure == 0) return Status();
  return not_found(name() + "cannot be reached: " + std::strerror(failure) +
                   "; is 'outrider worker' running there?");
}

Status Connection::check_version(const std::uint8_t* answer) const {
  if (answer[0] == RPC_PROTO_MAJOR_VERSION && answer[1] <= RPC_PROTO_MINOR_VERSION) return Status();
  return unsupported(name() + "speaks version " + std::to_string(answer[0]) + "." +
                     std::to_string(answer[1]) + " of ggml's RPC protocol, not " +
                     std::to_string(RPC_PROTO_MAJOR_VERSION) + "." +
                     std::to_string(RPC_PROTO_MINOR_VERSION) +
                     "; run the same version of Outrider on all machines");
}

Status Connection::hello(int timeout_ms) {
  std::array<std::uint8_t, 1 + 8 + kCapabilities> request{kHelloCommand};
  const std::uint64_t size = kCapabilities;
  std::memcpy(request.data() + 1, &size, sizeof size);
#if defined(MSG_NOSIGNAL)
  const ssize_t sent = send(socket_, request.data(), request.size(), MSG_NOSIGNAL);
#else
  const ssize_t sent = send(socket_, request.data(), request.size(), 0);
#endif
  const std::string stranger = "does not answer as a worker does";
  if (sent != static_cast<ssize_t>(request.size())) return not_found(name() + stranger);
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  std::array<std::uint8_t, 8 + kAnswer> answer{};
  for (std::size_t got = 0; got < answer.size();) {
    OUTRIDER_RETURN_IF_ERROR(
        wait_for(POLLIN, end,
                 "does not answer: it serves one client at a time, and may be busy with another "
                 "(a model that is still loaded counts), or it is no worker"));
    const ssize_t n = recv(socket_, answer.data() + got, answer.size() - got, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) return not_found(name() + stranger);
    got += static_cast<std::size_t>(n);
  }
  std::uint64_t length = 0;
  std::memcpy(&length, answer.data(), sizeof length);
  if (length != kAnswer) return not_found(name() + stranger);
  return check_version(answer.data() + sizeof length);
}

}  // namespace

Status check_worker(const WorkerAddress& worker, int timeout_ms, const std::atomic<bool>* cancel) {
  Connection connection(worker, cancel);
  OUTRIDER_RETURN_IF_ERROR(connection.connect(timeout_ms));
  return connection.hello(timeout_ms);
}

}  // namespace outrider::llama
