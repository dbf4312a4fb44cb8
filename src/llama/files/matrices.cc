#include "llama/files/matrices.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "ggml.h"
#include "gguf.h"
#include "llama/base/backend.h"
#include "llama/base/handles.h"
#include "llama/gguf/integers.h"
#include "llama/kernels/kernel_buffer.h"

namespace outrider::llama {
namespace {

// True when a single product over `name` uses the whole matrix: all weights of two dimensions or
// more, except tables of which a token takes one row, and what recurrent layers convolve or scan
// with. What experts add ("blk.0.ffn_up_exps.bias") has a row for each of them, and is no matrix.
// Granite Switch has its adapters in the model's file.
bool is_multiplied(std::string_view name, std::int64_t n_rows, bool tied_output) {
  const bool weights =
      name.ends_with(".weight") || name.ends_with(".lora_a") || name.ends_with(".lora_b");
  if (n_rows <= 1 || !weights) return false;
  if (name == "token_embd.weight") return tied_output;
  constexpr std::array<std::string_view, 5> kOthers{
      "position_embd", "token_types", "per_layer_token_embd", ".ssm_conv1d", ".shortconv.conv."};
  return std::none_of(kOthers.begin(), kOthers.end(), [name](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

std::int32_t experts_used(const gguf_context* gguf, const std::string& architecture) {
  const std::optional<std::int64_t> n = gguf::integer(gguf, architecture + ".expert_used_count");
  return gguf::in_32_bits(std::clamp<std::int64_t>(n.value_or(1), 1, 4096));
}

// What one file of a model says of its tensors.
struct Part {
  GgufHandle gguf;
  std::unique_ptr<ggml_context, decltype(&ggml_free)> tensors{nullptr, &ggml_free};

  bool has(const char* name) const { return ggml_get_tensor(tensors.get(), name) != nullptr; }
};

// REQUIRES: the file's header was read, so that llama.cpp can read it.
Result<Part> open_part(const std::string& path) {
  ggml_context* tensors = nullptr;
  Part part{.gguf =
                GgufHandle(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = &tensors}))};
  part.tensors.reset(tensors);
  if (!part.gguf || tensors == nullptr) return data_loss("'" + path + "' is damaged");
  return part;
}

Result<std::vector<Part>> open_parts(const std::string& path, const GgufHeader& header) {
  std::vector<Part> parts;
  for (const std::string& file : split_files(path, header.n_splits)) {
    if (file != path) OUTRIDER_RETURN_IF_ERROR(read_gguf_header(file).status());
    OUTRIDER_ASSIGN_OR_RETURN(Part part, open_part(file));
    parts.push_back(std::move(part));
  }
  return parts;
}

// What `tensor` says but for how many of its experts a token takes.
Matrix matrix_of(const ggml_tensor* tensor) {
  Matrix matrix{.name = tensor->name,
                .type = ggml_type_name(tensor->type),
                .bytes = ggml_nbytes(tensor),
                .elements = static_cast<std::uint64_t>(ggml_nelements(tensor)),
                .columns = static_cast<std::uint64_t>(tensor->ne[0]),
                .own_kernels_take_it = kernel_buffer_takes(tensor)};
  if (matrix.name.find("_exps") != std::string::npos) {
    matrix.experts = static_cast<std::int32_t>(std::max<std::int64_t>(1, tensor->ne[2]));
  }
  return matrix;
}

}  // namespace

Result<std::vector<Matrix>> read_matrices(const std::string& path) {
  OUTRIDER_ASSIGN_OR_RETURN(const GgufHeader header, read_gguf_header(path));
  return read_matrices(path, header);
}

Result<std::vector<Matrix>> read_matrices(const std::string& path, const GgufHeader& header) {
  ensure_backend();
  OUTRIDER_ASSIGN_OR_RETURN(const std::vector<Part> parts, open_parts(path, header));
  // In whichever file: llama.cpp uses the table a second time only where there is no output at all.
  const bool tied_output = std::none_of(parts.begin(), parts.end(),
                                        [](const Part& part) { return part.has("output.weight"); });
  const std::int32_t used = experts_used(parts.front().gguf.get(), header.architecture);
  std::vector<Matrix> matrices;
  for (const Part& part : parts) {
    for (ggml_tensor* tensor = ggml_get_first_tensor(part.tensors.get()); tensor != nullptr;
         tensor = ggml_get_next_tensor(part.tensors.get(), tensor)) {
      if (!is_multiplied(tensor->name, ggml_nrows(tensor), tied_output)) continue;
      Matrix matrix = matrix_of(tensor);
      matrix.experts_used = matrix.experts > 1 ? std::min(matrix.experts, used) : 1;
      matrices.push_back(std::move(matrix));
    }
  }
  return matrices;
}

}  // namespace outrider::llama
