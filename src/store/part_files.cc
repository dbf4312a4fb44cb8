#include "store/part_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace outrider {
namespace {

constexpr std::string_view kExtension = ".part";

// F of "F.<digits>-<digits>.part"; empty for any other name.
std::string_view file_of_part(std::string_view name) {
  if (!name.ends_with(kExtension)) return {};
  name.remove_suffix(kExtension.size());
  for (const char before : {'-', '.'}) {
    const std::size_t at = name.find_last_not_of("0123456789");
    if (at == std::string_view::npos || at + 1 == name.size() || name[at] != before) return {};
    name = name.substr(0, at);
  }
  return name;
}

// A file that somebody else removed before the lock was ours has no name any more: what has its
// name now may be a new one. With the lock, nobody else removes it.
// (Not by the number of its names, which some file systems do not tell.)
bool has_name(int file, const char* path) {
  struct stat info;
  struct stat named;
  return ::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && ::lstat(path, &named) == 0 &&
         named.st_dev == info.st_dev && named.st_ino == info.st_ino;
}

void remove_if_left(const char* path) {
  // For writing, since NFS locks nothing else.
  const int file = ::open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  if (::flock(file, LOCK_EX | LOCK_NB) == 0 && has_name(file, path)) (void)::unlink(path);
  (void)::close(file);
}

}  // namespace

std::string new_part_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};  // names only, no state that matters
  return path + "." + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1)) +
         std::string(kExtension);
}

bool hold_part(int file, const std::string& path) {
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  return has_name(file, path.c_str());
}

void remove_left_parts(const std::string& folder, const std::function<bool(std::string_view)>& of) {
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  for (const std::filesystem::directory_iterator end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const std::string_view file = file_of_part(name);
    if (!file.empty() && of(file)) remove_if_left(at->path().c_str());
  }
}

}  // namespace outrider
