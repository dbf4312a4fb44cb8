#include "http/connection/connections.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <utility>

namespace outrider::http {
namespace {

constexpr std::size_t kRefusals = 64;
constexpr std::size_t kOtherFiles = 256;  // files and pipes beside connections
constexpr rlim_t kAnyNumber = 1 << 30;    // where there is no limit

}  // namespace

ConnectionLimits connections_within(std::size_t wanted, std::size_t files) {
  const std::size_t sockets = files - std::min(kOtherFiles, files / 2);
  const std::size_t refusals = std::min(kRefusals, sockets / 4);
  return {.connections = std::min(wanted, sockets - refusals), .refusals = refusals};
}

// Many systems allow 1024 at first.
std::size_t allow_files(std::size_t connections) {
  const std::size_t wanted = connections + kRefusals + kOtherFiles;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  if (limit.rlim_cur <= before || ::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, kAnyNumber));
}

bool Connections::add(socket_t socket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (answering_.size() >= most_) return false;
  answering_[socket] = false;
  if (shut_) ::shutdown(socket, SHUT_RDWR);
  return true;
}

void Connections::remove(socket_t socket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  answering_.erase(socket);
  changed_.notify_all();
}

void Connections::set_answering(socket_t socket, bool answering) {
  const std::lock_guard<std::mutex> lock(mutex_);
  answering_.at(socket) = answering;
  changed_.notify_all();
}

void Connections::shut_waiting() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [socket, answering] : answering_) {
    if (!answering) ::shutdown(socket, SHUT_RD);
  }
}

void Connections::shut_all() {
  const std::lock_guard<std::mutex> lock(mutex_);
  shut_ = true;
  for (const auto& [socket, answering] : answering_) ::shutdown(socket, SHUT_RDWR);
}

bool Connections::wait_until_none_answers(std::int64_t ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(ms), [this] {
    return std::none_of(answering_.begin(), answering_.end(),
                        [](const std::pair<const socket_t, bool>& entry) { return entry.second; });
  });
}

bool ConnectionThreads::enqueue(std::function<void()> job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  join_ended();
  if (threads_.size() >= most_) return false;
  try {
    threads_.emplace_back();
    const std::list<std::thread>::iterator place = std::prev(threads_.end());
    *place = std::thread([this, place, job = std::move(job)] {
      job();
      const std::lock_guard<std::mutex> lock_end(mutex_);
      ended_.splice(ended_.end(), threads_, place);
      one_ended_.notify_all();
    });
  } catch (const std::exception&) {  // no thread, or no memory
    if (!threads_.empty() && !threads_.back().joinable()) threads_.pop_back();
    return false;
  }
  return true;
}

// They have done all but returning, so the wait is short. REQUIRES: the mutex
void ConnectionThreads::join_ended() {
  for (std::thread& thread : ended_) thread.join();
  ended_.clear();
}

void ConnectionThreads::shutdown() {
  std::unique_lock<std::mutex> lock(mutex_);
  one_ended_.wait(lock, [this] { return threads_.empty(); });
  join_ended();
}

}  // namespace outrider::http
