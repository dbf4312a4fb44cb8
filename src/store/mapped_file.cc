#include "store/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace outrider {
namespace {

Status open_error(const std::string& path, int reason) {
  const std::string message =
      "cannot open '" + path + "': " + std::generic_category().message(reason);
  return reason == ENOENT ? not_found(message) : internal_error(message);
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // Without O_NONBLOCK opening a pipe would wait for its writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return open_error(path, errno);
  struct stat info;
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    (void)::close(file);
    return invalid_argument("cannot open '" + path + "': it is no regular file");
  }
  const std::size_t size = static_cast<std::size_t>(info.st_size);
  void* data = nullptr;
  int reason = 0;
  if (size > 0) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    if (data == MAP_FAILED) reason = errno;
  }
  (void)::close(file);
  if (reason != 0) return open_error(path, reason);
  return MappedFile(std::span(static_cast<const std::byte*>(data), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  (void)::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace outrider
