// `outrider worker` as a process of a test, on a free port of the loopback.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "remote/child_process.h"

namespace outrider::testing {

class WorkerProcess {
 public:
  // Starts it and waits until it serves. Aborts the test program when it does not.
  WorkerProcess();
  // A worker that ended by itself says on stderr how, and what it said last.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  const std::string& address() const { return address_; }  // "127.0.0.1:PORT"
  void kill();                                             // with SIGKILL; returns when it is gone
  void stop();  // with SIGSTOP: its connections stay, and it says nothing more

 private:
  std::unique_ptr<ChildProcess> process_;
  std::string address_;
  bool killed_ = false;
};

// A port that was free a moment ago.
std::uint16_t free_port();

// While it lives, models in processes of their own are run by the command under test (or by
// `program`).
class HostProgram {
 public:
  HostProgram();
  explicit HostProgram(const std::string& program);
  ~HostProgram();
  HostProgram(const HostProgram&) = delete;
  HostProgram& operator=(const HostProgram&) = delete;

 private:
  std::string before_;  // what it was; empty: nothing
};

}  // namespace outrider::testing
