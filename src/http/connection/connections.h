// Connections: who is connected, and their threads: one each, which makes no client wait for
// another. (cpp-httplib's pool makes a thread only when none is idle at that moment, so of two
// connections that come together one waits until some other ends.)
//
//   waiting    between two requests, or before the first
//   answering  from the first byte of a request to the last of its answer
//
// Any thread. Tested by listener_test.cc.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include <cpp-httplib/httplib.h>

namespace outrider::http {

// How many connections at once, and how many threads say 503 to those beyond them.
struct ConnectionLimits {
  std::size_t connections = 0;
  std::size_t refusals = 0;

  std::size_t all() const { return connections + refusals; }
};

// `wanted` connections, or fewer where the process may have no more than `files` files: without any
// left none is accepted, so that clients would wait instead of being refused. Room stays for what
// else is opened. Tested by listener_test.cc.
ConnectionLimits connections_within(std::size_t wanted, std::size_t files);

// How many files the process may have, once its limit is raised as far as so many connections need
// it and the system allows.
std::size_t allow_files(std::size_t connections);

class Connections {
 public:
  explicit Connections(std::size_t most) : most_(most) {}

  // False: there are too many. Otherwise remove() must follow before the socket is closed.
  bool add(socket_t socket);
  void remove(socket_t socket);
  void set_answering(socket_t socket, bool answering);

  // Those that wait for a request get none any more.
  void shut_waiting();
  // All connections, whatever they do, and those that are added later.
  void shut_all();

  // False when `ms` went by and some were still answering.
  bool wait_until_none_answers(std::int64_t ms);

 private:
  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<socket_t, bool> answering_;  // by connection
  bool shut_ = false;
};

// A thread for each job, at most `most` at once: cpp-httplib's jobs are connections.
class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(std::size_t most) : most_(most) {}

  // False: there are too many, or no thread can be made; nothing has happened then.
  bool enqueue(std::function<void()> job) override;
  void shutdown() override;  // waits until all have ended

 private:
  void join_ended();

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable one_ended_;
  std::list<std::thread> threads_;
  std::list<std::thread> ended_;  // or just about to
};

}  // namespace outrider::http
