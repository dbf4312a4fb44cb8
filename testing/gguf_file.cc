#include "testing/gguf_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>

namespace outrider::testing {
namespace {

std::string in_quotes(const std::string& path) { return "'" + path + "'"; }

std::string error_text(int error) { return std::strerror(error); }

// The first bytes of a file, with what cannot be printed as dots.
std::string printable(const char* data, std::size_t size) {
  std::string text(data, size);
  for (char& c : text) {
    if (c < 0x20 || c > 0x7e) c = '.';
  }
  return text;
}

Status check_magic(const std::string& path, std::FILE* file) {
  char magic[4];
  const std::size_t got = std::fread(magic, 1, sizeof magic, file);
  if (std::ferror(file) != 0) {
    return not_found(in_quotes(path) + " cannot be read: " + error_text(errno));
  }
  if (got != sizeof magic || std::memcmp(magic, GGUF_MAGIC, sizeof magic) != 0) {
    const std::string what =
        got == 0 ? "it is empty" : "starts with \"" + printable(magic, got) + "\"";
    return invalid_argument(in_quotes(path) + " is not a GGUF file (" + what +
                            "); give a llama.cpp model in GGUF format");
  }
  std::rewind(file);
  return Status();
}

TensorInfo tensor_info(const gguf_context* metadata, std::int64_t id) {
  TensorInfo info;
  info.name = gguf_get_tensor_name(metadata, id);
  info.type = gguf_get_tensor_type(metadata, id);
  const std::int64_t* ne = gguf_get_tensor_ne(metadata, id);
  int n_dims = GGML_MAX_DIMS;
  while (n_dims > 1 && ne[n_dims - 1] == 1) --n_dims;
  info.shape.assign(ne, ne + n_dims);
  return info;
}

// The library's description of a tensor: what gguf_add_tensor reads of it, and no data.
ggml_tensor describe(const TensorInfo& info) {
  ggml_tensor tensor = {};
  tensor.type = info.type;
  for (int i = 0; i < GGML_MAX_DIMS; ++i) {
    tensor.ne[i] = i < static_cast<int>(info.shape.size()) ? info.shape[i] : 1;
  }
  tensor.nb[0] = ggml_type_size(info.type);
  tensor.nb[1] = info.row_bytes();
  for (int i = 2; i < GGML_MAX_DIMS; ++i) {
    tensor.nb[i] = tensor.nb[i - 1] * static_cast<std::size_t>(tensor.ne[i - 1]);
  }
  ggml_set_name(&tensor, info.name.c_str());
  return tensor;
}

std::size_t padding(std::uint64_t size, std::size_t alignment) {
  return (alignment - size % alignment) % alignment;
}

// The folder that holds `path`.
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

std::int64_t TensorInfo::n_rows() const {
  std::int64_t rows = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) rows *= shape[i];
  return rows;
}

Result<GgufReader> GgufReader::open(const std::string& path) {
  GgufReader reader;
  reader.path_ = path;
  reader.file_.reset(std::fopen(path.c_str(), "rb"));
  if (reader.file_ == nullptr) {
    return not_found(in_quotes(path) + " cannot be opened: " + error_text(errno));
  }
  struct stat info;
  if (fstat(fileno(reader.file_.get()), &info) != 0 || !S_ISREG(info.st_mode)) {
    return invalid_argument(in_quotes(path) + " is not a regular file; give a GGUF file");
  }
  reader.file_bytes_ = static_cast<std::uint64_t>(info.st_size);
  OUTRIDER_RETURN_IF_ERROR(check_magic(path, reader.file_.get()));

  gguf_init_params params = {};
  params.no_alloc = true;
  reader.metadata_.reset(gguf_init_from_file(path.c_str(), params));
  if (reader.metadata_ == nullptr) {
    return data_loss(in_quotes(path) +
                     " starts like a GGUF file but its header cannot be read; "
                     "it is damaged or was cut short");
  }
  const std::int64_t n_tensors = gguf_get_n_tensors(reader.metadata());
  for (std::int64_t id = 0; id < n_tensors; ++id) {
    reader.tensors_.push_back(tensor_info(reader.metadata(), id));
    const std::uint64_t end = gguf_get_data_offset(reader.metadata()) +
                              gguf_get_tensor_offset(reader.metadata(), id) +
                              reader.tensors_.back().bytes();
    if (end > reader.file_bytes_) {
      return data_loss(in_quotes(path) + " is cut short: tensor " +
                       in_quotes(reader.tensors_.back().name) + " ends at byte " +
                       std::to_string(end) + " of " + std::to_string(reader.file_bytes_));
    }
  }
  return reader;
}

Result<std::uint32_t> GgufReader::u32(const std::string& key) const {
  const std::int64_t id = gguf_find_key(metadata(), key.c_str());
  if (id < 0) return data_loss(in_quotes(path_) + " has no metadata '" + key + "'");
  std::int64_t value = -1;
  switch (gguf_get_kv_type(metadata(), id)) {
    case GGUF_TYPE_UINT8:
      value = gguf_get_val_u8(metadata(), id);
      break;
    case GGUF_TYPE_UINT16:
      value = gguf_get_val_u16(metadata(), id);
      break;
    case GGUF_TYPE_UINT32:
      value = gguf_get_val_u32(metadata(), id);
      break;
    case GGUF_TYPE_INT32:
      value = gguf_get_val_i32(metadata(), id);
      break;
    case GGUF_TYPE_INT64:
      value = gguf_get_val_i64(metadata(), id);
      break;
    case GGUF_TYPE_UINT64:
      value = static_cast<std::int64_t>(
          std::min<std::uint64_t>(gguf_get_val_u64(metadata(), id), std::uint64_t{1} << 40));
      break;
    default:
      return data_loss(in_quotes(path_) + ": metadata '" + key + "' is not a single integer but " +
                       gguf_type_name(gguf_get_kv_type(metadata(), id)));
  }
  if (value < 0 || value > std::numeric_limits<std::uint32_t>::max()) {
    return data_loss(in_quotes(path_) + ": metadata '" + key + "' is out of range");
  }
  return static_cast<std::uint32_t>(value);
}

Result<float> GgufReader::f32(const std::string& key) const {
  const std::int64_t id = gguf_find_key(metadata(), key.c_str());
  if (id < 0) return data_loss(in_quotes(path_) + " has no metadata '" + key + "'");
  if (gguf_get_kv_type(metadata(), id) != GGUF_TYPE_FLOAT32) {
    return data_loss(in_quotes(path_) + ": metadata '" + key + "' is not a 32-bit float");
  }
  return gguf_get_val_f32(metadata(), id);
}

Result<std::string> GgufReader::string(const std::string& key) const {
  const std::int64_t id = gguf_find_key(metadata(), key.c_str());
  if (id < 0) return data_loss(in_quotes(path_) + " has no metadata '" + key + "'");
  if (gguf_get_kv_type(metadata(), id) != GGUF_TYPE_STRING) {
    return data_loss(in_quotes(path_) + ": metadata '" + key + "' is not a string");
  }
  return std::string(gguf_get_val_str(metadata(), id));
}

Status GgufReader::read_tensor(std::size_t index, std::vector<std::uint8_t>& data) const {
  const TensorInfo& info = tensors_[index];
  data.resize(info.bytes());
  const std::uint64_t offset = gguf_get_data_offset(metadata()) +
                               gguf_get_tensor_offset(metadata(), static_cast<std::int64_t>(index));
  if (fseeko(file_.get(), static_cast<off_t>(offset), SEEK_SET) != 0 ||
      std::fread(data.data(), 1, data.size(), file_.get()) != data.size()) {
    return data_loss(in_quotes(path_) + ": tensor " + in_quotes(info.name) + " cannot be read (" +
                     std::to_string(data.size()) + " bytes at " + std::to_string(offset) + ")");
  }
  return Status();
}

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
  GgufHandle head(gguf_init_empty());
  gguf_set_kv(head.get(), metadata);
  // A context that is made, not read, always aligns to the default, so the key must not differ.
  gguf_remove_key(head.get(), GGUF_KEY_GENERAL_ALIGNMENT);
  for (const TensorInfo& info : tensors) {
    const ggml_tensor tensor = describe(info);
    if (info.name.size() >= GGML_MAX_NAME || gguf_find_tensor(head.get(), info.name.c_str()) >= 0) {
      return invalid_argument(in_quotes(path) + ": tensor name " + in_quotes(info.name) +
                              " is too long or there twice");
    }
    gguf_add_tensor(head.get(), &tensor);
  }
  std::vector<std::uint8_t> data(gguf_get_meta_size(head.get()));
  gguf_get_meta_data(head.get(), data.data());

  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file.ok()) return file.status();
  OUTRIDER_RETURN_IF_ERROR(file->write(data.data(), data.size()));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    OUTRIDER_RETURN_IF_ERROR(source(i, data));
    if (data.size() != tensors[i].bytes()) {
      return internal_error("tensor " + in_quotes(tensors[i].name) + " has " +
                            std::to_string(data.size()) + " bytes, expected " +
                            std::to_string(tensors[i].bytes()));
    }
    OUTRIDER_RETURN_IF_ERROR(file->write(data.data(), data.size()));
    OUTRIDER_RETURN_IF_ERROR(file->write_zeros(padding(data.size(), GGUF_DEFAULT_ALIGNMENT)));
  }
  return file->commit(durable);
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat first;
  struct stat second;
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace outrider::testing
