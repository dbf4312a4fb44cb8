#include "store/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace outrider {

FileLock::FileLock(const std::string& path)
    : file_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR)) {
  if (file_ < 0) return;
  while (::flock(file_, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    ::close(file_);
    file_ = -1;
    return;
  }
}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace outrider
