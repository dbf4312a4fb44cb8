// ChildProcess: a program that was started, until it has ended and nothing of it is left.
//
// Started with posix_spawn, since the host has threads: between fork and exec of such a process
// hardly anything may be called. What the program writes to stderr goes to a file without a name,
// which never fills up and blocks, and can be read when the program has died.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "remote/file_descriptor.h"

namespace outrider {

class ChildProcess {
 public:
  // Starts `program` (a path) with `arguments`, the first of which is its name. It inherits
  // `descriptors` as 3, 4, ...; its stdin and stdout are /dev/null. All signals have their usual
  // effect in it; SIGINT, SIGTERM and SIGHUP are blocked until it says otherwise, since they are
  // often sent to every process of a group. Errors: kNotFound, kInternal, naming the program;
  // kResourceExhausted.
  static Result<std::unique_ptr<ChildProcess>> start(const std::string& program,
                                                     const std::vector<std::string>& arguments,
                                                     const std::vector<int>& descriptors);

  ~ChildProcess();  // kills it where it still runs, and waits for its end
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Waits at most so many milliseconds for its end. True: it has ended and is no zombie.
  bool wait(int patience_ms);

  void kill();  // with SIGKILL, if it has not ended

  // "was killed by signal 9 (Killed)", "ended with exit code 3", "has ended", "is running".
  std::string ending() const;
  bool ended_well() const { return reaped_ && clean_; }

  // The last lines of its stderr, at most a few hundred bytes, joined by "; "; empty: it said
  // nothing.
  std::string last_lines() const;

 private:
  ChildProcess() = default;
  bool reap();

  pid_t pid_ = -1;
  FileDescriptor stderr_;
  bool reaped_ = false;
  bool known_ = false;  // how it ended (not when the host reaps all children itself)
  bool clean_ = false;  // with exit code 0
  int status_ = 0;      // waitpid's
};

}  // namespace outrider
