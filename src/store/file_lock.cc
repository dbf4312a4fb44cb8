#include "store/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <thread>

namespace outrider {

namespace {

int open_lock(const std::string& path) {
  return ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

// What a file looks like from outside; as it is by default where it is not there.
struct Look {
  std::filesystem::file_time_type written;
  std::uintmax_t bytes = 0;

  bool operator==(const Look&) const = default;
};

Look look_at(const std::string& path) {
  Look look;
  std::error_code gone;
  const std::filesystem::file_time_type written = std::filesystem::last_write_time(path, gone);
  if (gone) return look;
  const std::uintmax_t bytes = std::filesystem::file_size(path, gone);
  return gone ? look : Look{.written = written, .bytes = bytes};
}

// An addition to n-grams of 128 MiB took 5 s beside a compiler, 26 MB/s (a Xeon, 2026-11-30).
std::chrono::milliseconds time_for(std::uintmax_t bytes) {
  constexpr std::uintmax_t kBytesPerMs = 8192;
  return std::chrono::milliseconds(static_cast<std::int64_t>(bytes / kBytesPerMs));
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

FileLock::KeepWaiting FileLock::for_at_most(std::chrono::milliseconds patience,
                                            const std::string& replaced) {
  using Clock = std::chrono::steady_clock;
  const auto end_of = [patience](const Look& look) {
    return Clock::now() + patience + time_for(look.bytes);
  };
  const Look first = look_at(replaced);
  return [replaced, end_of, last = first, end = end_of(first)]() mutable {
    const Look now = look_at(replaced);
    if (now != last) end = end_of(now);
    last = now;
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
