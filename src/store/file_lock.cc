#include "store/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace outrider {

namespace {

int open_lock(const std::string& path) {
  return ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

}  // namespace

FileLock::FileLock(const std::string& path, const KeepWaiting& keep_waiting)
    : file_(open_lock(path)) {
  if (file_ < 0) return;
  while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    const bool taken = errno == EWOULDBLOCK;
    if (taken && keep_waiting()) continue;
    gave_up_ = taken;
    ::close(file_);
    file_ = -1;
    return;
  }
}

FileLock::KeepWaiting FileLock::for_at_most(std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + patience;
  return [end] {
    const Clock::duration left = end - Clock::now();
    if (left <= Clock::duration::zero()) return false;
    std::this_thread::sleep_for(std::min<Clock::duration>(left, std::chrono::milliseconds(50)));
    return true;
  };
}

// Unlocked, and not just closed: a child that was forked meanwhile has the file open as well, and
// would keep the lock as long as it lives.
FileLock::~FileLock() {
  if (file_ < 0) return;
  ::flock(file_, LOCK_UN);
  ::close(file_);
}

Status locked_by_another(const std::string& path, const std::string& lock) {
  return resource_exhausted("cannot write '" + path + "': another process has '" + lock +
                            "' locked; it may be stopped");
}

}  // namespace outrider
