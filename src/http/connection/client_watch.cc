#include "http/connection/client_watch.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>
#include <utility>

namespace outrider::http {
namespace {

constexpr std::string_view kInterim = "HTTP/1.1 100 Continue\r\n\r\n";

// Of `events`, and of errors and the end of both sides, what holds now.
short look(socket_t socket, short events) {
  pollfd what{.fd = socket, .events = events, .revents = 0};
  while (::poll(&what, 1, 0) < 0 && errno == EINTR) {
  }
  return what.revents;
}

bool is_dead(short events) { return (events & (POLLERR | POLLHUP | POLLNVAL)) != 0; }

}  // namespace

bool ClientWatch::has_ended() const {
#ifdef POLLRDHUP  // Linux's: also where there are bytes in front that nobody has read
  return look(socket_, POLLRDHUP) != 0;
#else
  char byte = 0;
  if (is_dead(look(socket_, 0))) return true;
  return ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
#endif
}

bool ClientWatch::is_gone() {
  if (is_dead(look(socket_, 0))) return true;
  if (answering_ || !has_ended()) return false;
  if (!takes_interim_) return true;
  ask();
  return false;
}

// Where there is no room now, which many unread answers leave, at the next look.
void ClientWatch::ask() {
  if (asked_ || (look(socket_, POLLOUT) & POLLOUT) == 0) return;
  asked_ = true;
  (void)::send(socket_, kInterim.data(), kInterim.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ClientWatch::cut_off() const { ::shutdown(socket_, SHUT_RDWR); }

void ClientWatches::Entry::begin(const httplib::Request& request,
                                 std::shared_ptr<ClientWatch> watch) {
  const std::lock_guard<std::mutex> lock(all_.mutex_);
  all_.watches_[&request] = std::move(watch);
  request_ = &request;
}

ClientWatches::Entry::~Entry() {
  const std::lock_guard<std::mutex> lock(all_.mutex_);
  all_.watches_.erase(request_);
}

std::shared_ptr<ClientWatch> ClientWatches::find(const httplib::Request& request) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = watches_.find(&request);
  return found != watches_.end() ? found->second : nullptr;
}

}  // namespace outrider::http
