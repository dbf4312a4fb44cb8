#include "store/file_ops.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace outrider {

int FileOps::create(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

int FileOps::keep_mode(int file, mode_t old) { return ::fchmod(file, old); }

long FileOps::write(int file, std::span<const std::byte> bytes) {
  return ::write(file, bytes.data(), bytes.size());
}

int FileOps::sync(int file) { return ::fsync(file); }

int FileOps::close(int file) { return ::close(file); }

int FileOps::rename(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str());
}

// Some file systems cannot sync a folder and say EINVAL; there is nothing better to do on those.
int FileOps::sync_folder(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return -1;
  const int result = ::fsync(file);
  const int reason = errno;
  (void)::close(file);
  if (result == 0 || reason == EINVAL) return 0;
  errno = reason;
  return -1;
}

int FileOps::remove(const std::string& path) { return ::unlink(path.c_str()); }

int PrivateFileOps::create(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

int PrivateFileOps::keep_mode(int /*file*/, mode_t /*old*/) { return 0; }

}  // namespace outrider
