#include "testing/tiny_gguf_tensors.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "testing/tiny_weights.h"

namespace outrider::testing {

ggml_type stored_type(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return GGML_TYPE_F32;
    case WeightType::kQ8_0:
      return GGML_TYPE_Q8_0;
    case WeightType::kQ4_0:
      return GGML_TYPE_Q4_0;
  }
  return GGML_TYPE_F32;
}

namespace {

std::vector<std::uint8_t> encode_ids(const std::vector<float>& values) {
  std::vector<std::uint8_t> bytes;
  for (const float value : values) {
    const std::int64_t id = static_cast<std::int64_t>(value);  // exact: ids are below 2^24
    const std::uint8_t* begin = reinterpret_cast<const std::uint8_t*>(&id);
    bytes.insert(bytes.end(), begin, begin + sizeof id);
  }
  return bytes;
}

}  // namespace

float& TinyMatrix::at(int row, int column) {
  assert(row >= 0 && row < info.n_rows() && column >= 0 && column < info.row_length());
  return values[static_cast<std::size_t>(row) * static_cast<std::size_t>(info.row_length()) +
                static_cast<std::size_t>(column)];
}

TinyMatrix& TinyTensors::add(const std::string& name, int columns, int rows, bool quantised) {
  TinyMatrix matrix;
  matrix.info = {name, quantised ? stored_type(type_) : GGML_TYPE_F32, {columns}};
  if (rows > 0) matrix.info.shape.push_back(rows);
  matrix.values.assign(
      static_cast<std::size_t>(columns) * static_cast<std::size_t>(std::max(1, rows)), 0.0F);
  matrix.quantised = quantised;
  matrices_.push_back(std::move(matrix));
  return matrices_.back();
}

TinyMatrix& TinyTensors::zeros(const std::string& name, int columns, int rows) {
  return add(name, columns, rows, true);
}

TinyMatrix& TinyTensors::gaussian(const std::string& name, int columns, int rows,
                                  double deviation) {
  TinyMatrix& matrix = add(name, columns, rows, true);
  const std::uint64_t key = tensor_key(seed_, name);
  for (std::size_t i = 0; i < matrix.values.size(); ++i) {
    matrix.values[i] = static_cast<float>(tiny_gaussian(key, i) * deviation);
  }
  return matrix;
}

TinyMatrix& TinyTensors::plain(const std::string& name, int columns, int rows, double value) {
  TinyMatrix& matrix = add(name, columns, rows, false);
  std::fill(matrix.values.begin(), matrix.values.end(), static_cast<float>(value));
  return matrix;
}

void TinyTensors::token_ids(const std::string& name, const std::vector<Token>& ids) {
  TinyMatrix& matrix = add(name, static_cast<int>(ids.size()), 0, false);
  matrix.info.type = GGML_TYPE_I64;
  std::copy(ids.begin(), ids.end(), matrix.values.begin());
}

void TinyTensors::add_noise(const std::string& prefix, float size, std::uint64_t noise_seed) {
  if (size == 0.0F) return;
  for (TinyMatrix& matrix : matrices_) {
    if (!matrix.quantised || !matrix.info.name.starts_with(prefix)) continue;
    const double deviation = root_mean_square(matrix.values) * static_cast<double>(size);
    const std::uint64_t key = tensor_key(~noise_seed, matrix.info.name);
    for (std::size_t i = 0; i < matrix.values.size(); ++i) {
      matrix.values[i] += static_cast<float>(tiny_gaussian(key, i) * deviation);
    }
  }
}

Status TinyTensors::write(const std::string& path, const gguf_context* metadata) const {
  std::vector<TensorInfo> infos;
  for (const TinyMatrix& matrix : matrices_) infos.push_back(matrix.info);
  const TensorSource source = [&](std::size_t index, std::vector<std::uint8_t>& data) {
    const TinyMatrix& matrix = matrices_[index];
    data = matrix.info.type == GGML_TYPE_I64
               ? encode_ids(matrix.values)
               : encode_weights(matrix.values, matrix.quantised ? type_ : WeightType::kF32);
    return Status();
  };
  return write_gguf(path, metadata, infos, source, /*durable=*/false);
}

}  // namespace outrider::testing
