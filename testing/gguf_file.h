// GGUF files of tests and of the tools that make small models: src/llama/gguf with a file that need
// not be brought to the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "llama/gguf/gguf_file.h"

namespace outrider::testing {

using GgufReader = gguf::GgufReader;
using GgufHandle = gguf::Handle;
using TensorInfo = gguf::TensorInfo;
using TensorSource = gguf::TensorSource;

// A file that appears under its name only when it is complete: it is written under a temporary
// name in the same folder, and removed again when it is destroyed without commit().
// Invariant: between create() and commit() the final name is untouched.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  const std::string& temporary_path() const { return temporary_path_; }
  std::uint64_t written() const { return written_; }

  // kResourceExhausted when the disk is full, kInternal for another error.
  Status write(const void* data, std::size_t bytes);
  Status write_zeros(std::size_t bytes);

  // Flushes, with `durable` also to the disk (fsync of file and folder), and renames. At most once.
  Status commit(bool durable);

 private:
  AtomicFile() = default;
  Status failure(const char* what) const;

  std::string path_;
  std::string temporary_path_;
  int descriptor_ = -1;
  std::uint64_t written_ = 0;
};

// Writes metadata and tensors as a GGUF file at `path` (gguf::write_gguf). `durable` as in
// AtomicFile::commit. On failure nothing is left behind and an existing file at `path` is
// unchanged.
Status write_gguf(const std::string& path, const gguf_context* metadata,
                  const std::vector<TensorInfo>& tensors, const TensorSource& source, bool durable);

// Writes the model at `whole` as several files, as llama-gguf-split does: `start` followed by
// "-00001-of-00003.gguf" and so on. `cuts`: of each file but the first, the index of its first
// tensor, rising; with 0 the first file holds metadata alone. Gives the first file's path.
Result<std::string> write_gguf_split(const std::string& whole, const std::string& start,
                                     const std::vector<std::size_t>& cuts);

// True when both paths name the same existing file (by device and inode).
bool same_file(const std::string& a, const std::string& b);

}  // namespace outrider::testing
