#include "llama/gguf/gguf_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "llama/gguf/gguf_start.h"
#include "llama/gguf/integers.h"

namespace outrider::gguf {
namespace {

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

}  // namespace

std::int64_t TensorInfo::n_rows() const {
  std::int64_t rows = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) rows *= shape[i];
  return rows;
}

Result<GgufReader> GgufReader::open(const std::string& path) {
  GgufReader reader;
  reader.path_ = path;
  OUTRIDER_ASSIGN_OR_RETURN(reader.file_bytes_, size_of_gguf(path));
  reader.file_.reset(std::fopen(path.c_str(), "rb"));
  if (reader.file_ == nullptr) {
    return not_found(in_quotes(path) + " cannot be opened: " + std::strerror(errno));
  }

  gguf_init_params params = {};
  params.no_alloc = true;
  try {
    reader.metadata_.reset(gguf_init_from_file(path.c_str(), params));
  } catch (const std::exception& error) {
    return data_loss(in_quotes(path) + " is damaged: " + error.what());
  }
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
  const std::optional<std::int64_t> value = integer(metadata(), key);
  if (!value) {
    return data_loss(in_quotes(path_) + ": metadata '" + key + "' is not a single integer but " +
                     gguf_type_name(gguf_get_kv_type(metadata(), id)));
  }
  if (!std::in_range<std::uint32_t>(*value)) {
    return data_loss(in_quotes(path_) + ": metadata '" + key + "' is out of range");
  }
  return static_cast<std::uint32_t>(*value);
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

Status write_gguf(const gguf_context* metadata, const std::vector<TensorInfo>& tensors,
                  const TensorSource& source, const ByteSink& sink) {
  Handle header(gguf_init_empty());
  gguf_set_kv(header.get(), metadata);
  // A context that is made, not read, always aligns to the default, so the key must not differ.
  gguf_remove_key(header.get(), GGUF_KEY_GENERAL_ALIGNMENT);
  for (const TensorInfo& info : tensors) {
    const ggml_tensor tensor = describe(info);
    if (info.name.size() >= GGML_MAX_NAME ||
        gguf_find_tensor(header.get(), info.name.c_str()) >= 0) {
      return invalid_argument("tensor name " + in_quotes(info.name) +
                              " is too long or there twice");
    }
    gguf_add_tensor(header.get(), &tensor);
  }
  std::vector<std::uint8_t> data(gguf_get_meta_size(header.get()));
  gguf_get_meta_data(header.get(), data.data());

  static constexpr std::array<std::uint8_t, GGUF_DEFAULT_ALIGNMENT> kZeros = {};
  OUTRIDER_RETURN_IF_ERROR(sink(data));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    OUTRIDER_RETURN_IF_ERROR(source(i, data));
    if (data.size() != tensors[i].bytes()) {
      return internal_error("tensor " + in_quotes(tensors[i].name) + " has " +
                            std::to_string(data.size()) + " bytes, expected " +
                            std::to_string(tensors[i].bytes()));
    }
    OUTRIDER_RETURN_IF_ERROR(sink(data));
    const std::size_t gap = padding(data.size(), GGUF_DEFAULT_ALIGNMENT);
    OUTRIDER_RETURN_IF_ERROR(sink(std::span(kZeros).first(gap)));
  }
  return Status();
}

}  // namespace outrider::gguf
