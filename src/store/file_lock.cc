#include "store/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace outrider {

namespace {

int open_lock(const std::string& path) {
  return ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

}  // namespace

FileLock::FileLock(const std::string& path) : file_(open_lock(path)) { lock({}); }

FileLock::FileLock(const std::string& path, const KeepWaiting& keep_waiting)
    : file_(open_lock(path)) {
  lock(keep_waiting);
}

void FileLock::lock(const KeepWaiting& keep_waiting) {
  if (file_ < 0) return;
  const int how = keep_waiting ? LOCK_EX | LOCK_NB : LOCK_EX;
  while (::flock(file_, how) != 0) {
    if (errno == EINTR) continue;
    if (keep_waiting && errno == EWOULDBLOCK && keep_waiting()) continue;
    ::close(file_);
    file_ = -1;
    return;
  }
}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace outrider
