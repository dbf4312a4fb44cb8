// Reading the header of a GGUF file, and writing a new one tensor by tensor.
//
// Everything here works on the file format only; no model is loaded. Tested by
// testing/gguf_file_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "ggml.h"
#include "gguf.h"

namespace outrider::gguf {

struct Deleter {
  void operator()(gguf_context* context) const { gguf_free(context); }
};
using Handle = std::unique_ptr<gguf_context, Deleter>;

// One tensor as a GGUF file describes it.
struct TensorInfo {
  std::string name;  // at most 63 bytes
  ggml_type type = GGML_TYPE_F32;
  std::vector<std::int64_t> shape;  // 1 to 4 sizes, the contiguous one (a row's length) first

  std::int64_t row_length() const { return shape[0]; }
  std::int64_t n_rows() const;  // product of the sizes after the first
  std::size_t row_bytes() const { return ggml_row_size(type, shape[0]); }
  std::size_t bytes() const { return row_bytes() * static_cast<std::size_t>(n_rows()); }
};

// A GGUF file opened for reading: its metadata in memory, its tensors on disk.
class GgufReader {
 public:
  // Errors of size_of_gguf (llama/gguf/gguf_start.h); kDataLoss when it is damaged, or ends before
  // its last tensor.
  static Result<GgufReader> open(const std::string& path);

  const std::string& path() const { return path_; }
  const gguf_context* metadata() const { return metadata_.get(); }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  std::uint64_t file_bytes() const { return file_bytes_; }

  // Metadata by key; kDataLoss (naming file and key) when it is missing or of another type.
  // u32 also takes other integer types whose value fits.
  Result<std::uint32_t> u32(const std::string& key) const;
  Result<float> f32(const std::string& key) const;
  Result<std::string> string(const std::string& key) const;
  bool has(const std::string& key) const { return gguf_find_key(metadata(), key.c_str()) >= 0; }

  // Reads all of tensor `index` (0 <= index < tensors().size()) into `data`, replacing it.
  Status read_tensor(std::size_t index, std::vector<std::uint8_t>& data) const;

 private:
  struct FileDeleter {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  GgufReader() = default;

  std::string path_;
  std::unique_ptr<std::FILE, FileDeleter> file_;
  Handle metadata_;
  std::vector<TensorInfo> tensors_;
  std::uint64_t file_bytes_ = 0;
};

// Gives the bytes of tensor `index`; called once for each, in order. The data must have exactly
// bytes() of its TensorInfo; it may be left in `data` from the call before and is only resized.
using TensorSource = std::function<Status(std::size_t index, std::vector<std::uint8_t>& data)>;

// Takes the next bytes of the file.
using ByteSink = std::function<Status(std::span<const std::uint8_t> bytes)>;

// Gives `sink` metadata and tensors as a GGUF file, holding one tensor at a time in memory. Aligned
// to the default of 32 bytes, whatever `metadata` says. Errors: kInvalidArgument for a name that is
// too long or there twice; the source's and the sink's.
Status write_gguf(const gguf_context* metadata, const std::vector<TensorInfo>& tensors,
                  const TensorSource& source, const ByteSink& sink);

}  // namespace outrider::gguf
