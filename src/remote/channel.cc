#include "remote/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace outrider {
namespace {

constexpr std::uint32_t kMagic = 0x4f75744d;  // "OutM"

#if defined(MSG_NOSIGNAL)
constexpr int kNoSignal = MSG_NOSIGNAL;
#else
constexpr int kNoSignal = 0;  // SO_NOSIGPIPE instead, below
#endif

Status closed() { return internal_error("the other end of the channel is closed"); }

Status write_all(int socket, const char* bytes, std::size_t n) {
  while (n > 0) {
    const ssize_t written = ::send(socket, bytes, n, kNoSignal);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return closed();
    bytes += written;
    n -= static_cast<std::size_t>(written);
  }
  return Status();
}

}  // namespace

Result<std::pair<FileDescriptor, FileDescriptor>> Channel::make_pair() {
  int ends[2] = {-1, -1};
#if defined(SOCK_CLOEXEC)
  const int made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
#else
  const int made = socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
#endif
  if (made != 0) {
    return resource_exhausted(std::string("cannot make a pair of sockets: ") +
                              std::strerror(errno));
  }
  for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  return std::pair(FileDescriptor(ends[0]), FileDescriptor(ends[1]));
}

Channel::Channel(FileDescriptor socket) : socket_(std::move(socket)) {
#if defined(SO_NOSIGPIPE)
  const int on = 1;
  setsockopt(socket_.get(), SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
}

Status Channel::send(std::uint32_t kind, std::string_view body, std::uint32_t call) {
  static_assert(sizeof(Header) == 16);
  if (body.size() > kMaxBody) {
    return invalid_argument("a message of " + std::to_string(body.size()) +
                            " bytes is longer than the " + std::to_string(kMaxBody) +
                            " that the channel takes");
  }
  const Header header{.magic = kMagic,
                      .kind = kind,
                      .length = static_cast<std::uint32_t>(body.size()),
                      .call = call};
  std::string message(reinterpret_cast<const char*>(&header), sizeof header);
  message += body;
  const std::lock_guard<std::mutex> lock(sending_);
  return write_all(socket_.get(), message.data(), message.size());
}

Status Channel::read(char* to, std::size_t n, const std::function<bool()>& wait, int interval_ms) {
  while (n > 0) {
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int found = poll(&ready, 1, wait ? interval_ms : -1);
    if (found < 0 && errno != EINTR) return closed();
    if (found <= 0) {
      if (wait && !wait()) return cancelled("the waiting for a message was ended");
      continue;
    }
    const ssize_t got = ::recv(socket_.get(), to, n, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return closed();
    to += got;
    n -= static_cast<std::size_t>(got);
  }
  return Status();
}

Result<Message> Channel::receive(const std::function<bool()>& wait, int interval_ms) {
  if (!begun_) {
    Header header;
    char* bytes = reinterpret_cast<char*>(&header);
    // The magic first: a program that talks of something else may not say 16 bytes.
    OUTRIDER_RETURN_IF_ERROR(read(bytes, sizeof header.magic, wait, interval_ms));
    if (header.magic != kMagic) return data_loss("what came over the channel is no message");
    OUTRIDER_RETURN_IF_ERROR(
        read(bytes + sizeof header.magic, sizeof header - sizeof header.magic, wait, interval_ms));
    begun_ = header;
  }
  if (begun_->length > kMaxBody) {
    return data_loss("a message on the channel claims to have " + std::to_string(begun_->length) +
                     " bytes; at most " + std::to_string(kMaxBody) + " are taken");
  }
  Message message{
      .kind = begun_->kind, .call = begun_->call, .body = std::string(begun_->length, '\0')};
  begun_.reset();
  OUTRIDER_RETURN_IF_ERROR(read(message.body.data(), message.body.size(), wait, interval_ms));
  return message;
}

}  // namespace outrider
