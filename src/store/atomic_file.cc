#include "store/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "store/part_files.h"

namespace outrider {
namespace {

constexpr int kMostLinks = 40;  // as many as Linux follows
constexpr std::size_t kMostPerWrite = std::size_t{1} << 20;

Status save_error(const std::string& path, const char* what, int reason) {
  std::string message =
      "cannot save '" + path + "': " + what + ": " + std::generic_category().message(reason);
  if (reason == ENOSPC || reason == EDQUOT) return resource_exhausted(std::move(message));
  if (reason == ENOENT) return not_found(std::move(message));
  return internal_error(std::move(message));
}

std::string folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

// Of earlier contents of the file at `path`.
void remove_left_parts_of(const std::string& path) {
  const std::string own = std::filesystem::path(path).filename().string();
  remove_left_parts(folder_of(path), [&](std::string_view name) { return name == own; });
}

}  // namespace

Result<std::string> file_to_replace(const std::string& path) {
  // A part file beside it could be made, but never get that name.
  if (path.empty()) return invalid_argument("cannot save '': give a file's name");
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) {
    return invalid_argument("cannot save '" + path + "': it is a folder; give a file's name");
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return invalid_argument("cannot save '" + path + "': it is no regular file");
  }
  // Not canonical(): it takes a link that leads to no file yet for that file.
  std::filesystem::path target = path;
  for (int n = 0; n < kMostLinks && std::filesystem::is_symlink(target, error); ++n) {
    target = target.parent_path() / std::filesystem::read_symlink(target, error);
  }
  return target.string();
}

AtomicFile::AtomicFile(FileOps& ops, std::string path, std::string part, int file, int lock)
    : ops_(&ops), path_(std::move(path)), part_(std::move(part)), file_(file), lock_(lock) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : ops_(other.ops_),
      path_(std::move(other.path_)),
      part_(std::move(other.part_)),
      file_(std::exchange(other.file_, -1)),
      lock_(std::exchange(other.lock_, -1)),
      exists_(std::exchange(other.exists_, false)) {}

AtomicFile::~AtomicFile() { abandon(); }

Result<AtomicFile> AtomicFile::create(const std::string& path, FileOps& ops) {
  Result<std::string> target = file_to_replace(path);
  if (!target.ok()) return target.status();
  remove_left_parts_of(*target);
  std::string part;
  int file = -1;
  constexpr int kTries = 100;  // others remove what is not locked yet, but not again and again
  int tries = 0;
  for (bool held = false; !held;) {
    if (++tries > kTries) {
      return internal_error("cannot save '" + path + "': no file beside it stays there");
    }
    part = new_part_name(*target);
    file = ops.create(part);
    if (file < 0 && errno == EEXIST) continue;  // of a killed process of the same number
    if (file < 0) return save_error(path, "cannot create a file beside it", errno);
    held = hold_part(file, part);
    if (!held) (void)ops.close(file);
  }
  struct stat old;
  if (::stat(target->c_str(), &old) == 0) (void)ops.keep_mode(file, old.st_mode & 07777);
  const int lock = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  return AtomicFile(ops, *std::move(target), std::move(part), file, lock);
}

void AtomicFile::abandon() {
  if (file_ >= 0) (void)ops_->close(file_);
  if (exists_) (void)ops_->remove(part_);
  if (lock_ >= 0) (void)::close(lock_);
  file_ = lock_ = -1;
  exists_ = false;
}

Status AtomicFile::failure(const char* what, int reason) {
  abandon();
  return save_error(path_, what, reason);
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  if (file_ < 0) return internal_error("cannot save '" + path_ + "': an earlier write failed");
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kMostPerWrite);
    const long written = ops_->write(file_, bytes.first(n));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failure("writing failed", errno);
    // Nothing written and no reason given: a disk that takes no more.
    if (written == 0) return failure("writing failed", ENOSPC);
    bytes = bytes.subspan(std::min(n, static_cast<std::size_t>(written)));
  }
  return Status();
}

Status AtomicFile::commit() {
  if (file_ < 0) return internal_error("cannot save '" + path_ + "': an earlier write failed");
  if (ops_->sync(file_) != 0) return failure("writing to the disk failed", errno);
  // Some network file systems tell of a full disk only here.
  if (ops_->close(std::exchange(file_, -1)) != 0) return failure("closing failed", errno);
  if (ops_->rename(part_, path_) != 0) return failure("replacing the old file failed", errno);
  exists_ = false;
  if (lock_ >= 0) (void)::close(std::exchange(lock_, -1));
  if (ops_->sync_folder(folder_of(path_)) != 0) {
    return save_error(path_,
                      "the new file is in place, but syncing its folder failed, so that the old "
                      "one may be back after a power failure",
                      errno);
  }
  return Status();
}

Status write_whole_file(const std::string& path, std::string_view contents) {
  FileOps ops;
  return write_whole_file(path, contents, ops);
}

Status write_whole_file(const std::string& path, std::string_view contents, FileOps& ops) {
  Result<AtomicFile> file = AtomicFile::create(path, ops);
  if (!file.ok()) return file.status();
  OUTRIDER_RETURN_IF_ERROR(file->write(std::as_bytes(std::span(contents))));
  return file->commit();
}

Status check_writable(const std::string& path) {
  FileOps ops;
  return AtomicFile::create(path, ops).status();
}

}  // namespace outrider
