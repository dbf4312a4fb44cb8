// The tensors of a tiny model that is put together entry by entry, and their file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "testing/gguf_file.h"
#include "testing/tiny_gguf.h"

namespace outrider::testing {

// How matrices of a file with that weight type are stored.
ggml_type stored_type(WeightType type);

// A tensor's description and its values, [rows, columns], row by row.
struct TinyMatrix {
  TensorInfo info;
  std::vector<float> values;
  bool quantised = false;  // stored in the weight type of the file; F32 otherwise

  // REQUIRES: row and column are within the matrix.
  float& at(int row, int column);
};

class TinyTensors {
 public:
  TinyTensors(WeightType type, std::uint64_t seed) : type_(type), seed_(seed) {}

  // Each adds a tensor; the reference stays valid as long as this object lives.
  TinyMatrix& zeros(const std::string& name, int columns, int rows);
  TinyMatrix& gaussian(const std::string& name, int columns, int rows, double deviation);
  // F32 whatever the weight type: one-dimensional where `rows` is 0.
  TinyMatrix& plain(const std::string& name, int columns, int rows, double value);
  // I64, as d2t is.
  void token_ids(const std::string& name, const std::vector<Token>& ids);

  // Adds Gaussian noise of `size`, relative to each one's root mean square, to the matrices that
  // are there and whose name begins with `prefix`. A matrix of zeros stays one.
  void add_noise(const std::string& prefix, float size, std::uint64_t noise_seed);

  // Whole or not at all, as write_tiny_gguf does.
  Status write(const std::string& path, const gguf_context* metadata) const;

 private:
  TinyMatrix& add(const std::string& name, int columns, int rows, bool quantised);

  WeightType type_;
  std::uint64_t seed_;
  std::deque<TinyMatrix> matrices_;
};

}  // namespace outrider::testing
