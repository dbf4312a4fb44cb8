#include "testing/gguf_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>

namespace outrider::testing {
namespace {

std::string in_quotes(const std::string& path) { return "'" + path + "'"; }

std::string error_text(int error) { return std::strerror(error); }

// The folder that holds `path`.
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  // The process's id and a count make the name unique; O_EXCL makes sure of it.
  static std::atomic<unsigned> count{0};
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return invalid_argument(in_quotes(path) + " exists and is not a regular file");
  }
  AtomicFile file;
  file.path_ = path;
  file.temporary_path_ = path + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(++count);
  file.descriptor_ =
      ::open(file.temporary_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file.descriptor_ < 0) {
    const int error = errno;
    file.temporary_path_.clear();
    return invalid_argument(in_quotes(path) + " cannot be written: " + error_text(error));
  }
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::move(other.temporary_path_)),
      descriptor_(other.descriptor_),
      written_(other.written_) {
  other.descriptor_ = -1;
  other.temporary_path_.clear();
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

Status AtomicFile::failure(const char* what) const {
  const int error = errno;
  const std::string message = in_quotes(path_) + ": " + what + ": " + error_text(error);
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return full ? resource_exhausted(message) : internal_error(message);
}

Status AtomicFile::write(const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(descriptor_, at, bytes);
    if (n < 0) {
      if (errno == EINTR) continue;
      return failure("writing failed");
    }
    at += n;
    bytes -= static_cast<std::size_t>(n);
    written_ += static_cast<std::uint64_t>(n);
  }
  return Status();
}

Status AtomicFile::write_zeros(std::size_t bytes) {
  static constexpr char kZeros[4096] = {};
  while (bytes > 0) {
    const std::size_t n = std::min(bytes, sizeof kZeros);
    OUTRIDER_RETURN_IF_ERROR(write(kZeros, n));
    bytes -= n;
  }
  return Status();
}

Status AtomicFile::commit(bool durable) {
  if (durable && fsync(descriptor_) != 0) return failure("flushing to the disk failed");
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0) return failure("closing failed");
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) return failure("renaming failed");
  temporary_path_.clear();
  if (!durable) return Status();
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    // The file is complete either way; a folder that cannot be flushed is no failure.
    static_cast<void>(fsync(folder));
    ::close(folder);
  }
  return Status();
}

Status write_gguf(const std::string& path, const gguf_context* metadata,
                  const std::vector<TensorInfo>& tensors, const TensorSource& source,
                  bool durable) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file.ok()) return file.status();
  const auto sink = [&file](std::span<const std::uint8_t> bytes) {
    return file->write(bytes.data(), bytes.size());
  };
  OUTRIDER_RETURN_IF_ERROR(gguf::write_gguf(metadata, tensors, source, sink));
  return file->commit(durable);
}

Result<std::string> write_gguf_split(const std::string& whole, const std::string& start,
                                     const std::vector<std::size_t>& cuts) {
  OUTRIDER_ASSIGN_OR_RETURN(const GgufReader reader, GgufReader::open(whole));
  std::vector<std::size_t> bounds = {0};
  bounds.insert(bounds.end(), cuts.begin(), cuts.end());
  bounds.push_back(reader.tensors().size());
  if (!std::is_sorted(bounds.begin(), bounds.end())) {
    return invalid_argument("the cuts are not in rising order, or behind the last tensor");
  }
  const int n_files = static_cast<int>(cuts.size()) + 1;
  std::string first;
  for (int file = 0; file < n_files; ++file) {
    const GgufHandle metadata(gguf_init_empty());
    if (file == 0) gguf_set_kv(metadata.get(), reader.metadata());
    gguf_set_val_u16(metadata.get(), "split.no", static_cast<std::uint16_t>(file));
    gguf_set_val_u16(metadata.get(), "split.count", static_cast<std::uint16_t>(n_files));
    gguf_set_val_i32(metadata.get(), "split.tensors.count",
                     static_cast<std::int32_t>(reader.tensors().size()));
    const std::size_t begin = bounds[static_cast<std::size_t>(file)];
    const std::size_t end = bounds[static_cast<std::size_t>(file) + 1];
    const auto tensor_at = [&reader](std::size_t i) {
      return reader.tensors().begin() + static_cast<std::ptrdiff_t>(i);
    };
    const std::vector<TensorInfo> tensors(tensor_at(begin), tensor_at(end));
    const TensorSource source = [&](std::size_t i, std::vector<std::uint8_t>& data) {
      return reader.read_tensor(begin + i, data);
    };
    char ending[48];
    std::snprintf(ending, sizeof ending, "-%05d-of-%05d.gguf", file + 1, n_files);
    const std::string path = start + ending;
    if (file == 0) first = path;
    OUTRIDER_RETURN_IF_ERROR(write_gguf(path, metadata.get(), tensors, source, /*durable=*/false));
  }
  return first;
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat first;
  struct stat second;
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace outrider::testing
