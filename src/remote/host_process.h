// HostProcess: makes this process the child that runs a model for its parent
// (remote/serve_model.h), and nothing else.
#pragma once

#include <sys/types.h>

#include <thread>

#include "base/status.h"
#include "remote/file_descriptor.h"

namespace outrider {

// Lives as long as main does. At most one.
//  - SIGINT and SIGTERM are ignored: Ctrl-C, `timeout` and the like reach every process of a group,
//    and what they mean is the parent's to decide. So are SIGHUP and SIGPIPE.
//  - No core file is written: a crash is expected here, and a core file would hold the weights.
//  - What else the parent had open is closed: its sockets must not stay open here.
//  - When the parent's end of the channel closes, this process ends at once, whatever it is doing;
//    where a forked copy of the parent keeps it open, a second after the parent's end.
//    (Linux could send a signal at the parent's death, PR_SET_PDEATHSIG, but does so at the end of
//    the thread that started us, which may come long before.)
class HostProcess {
 public:
  // `channel` and `memory` are descriptors that were inherited, above 2. Errors: kInvalidArgument
  // when they are not open; kResourceExhausted.
  static Status check(int channel, int memory);

  HostProcess(int channel, int memory);
  ~HostProcess();
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

 private:
  void watch();

  const pid_t parent_id_;
  FileDescriptor parent_;
  FileDescriptor over_read_;
  FileDescriptor over_write_;
  std::thread thread_;
};

}  // namespace outrider
