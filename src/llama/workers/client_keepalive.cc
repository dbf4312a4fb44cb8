// Linux gives a connection the settings of the socket that listens, and /proc names the sockets of
// this process. Tested by tests/workers_test.cc.
#include "llama/workers/client_keepalive.h"

#if defined(__linux__)
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>
#endif

namespace outrider::llama {

#if defined(__linux__)

namespace {

// Whether it is a socket for IPv4, which is all that ggml knows, with this port as its own.
bool has_port(int descriptor, std::uint16_t port) {
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  return getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
         size == sizeof address && address.sin_family == AF_INET && ntohs(address.sin_port) == port;
}

// No effect on what is no TCP socket.
void ask_on(int descriptor) {
  const auto set = [descriptor](int level, int name, int value) {
    static_cast<void>(setsockopt(descriptor, level, name, &value, sizeof value));
  };
  set(IPPROTO_TCP, TCP_KEEPIDLE, kClientIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kClientQuestionSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kClientQuestions);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
}

}  // namespace

void ask_for_clients(std::uint16_t port) {
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/fd", error);
  const std::filesystem::directory_iterator end;
  for (; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (descriptor >= 0 && has_port(descriptor, port)) ask_on(descriptor);
  }
}

#else

void ask_for_clients(std::uint16_t /*port*/) {}

#endif

}  // namespace outrider::llama
