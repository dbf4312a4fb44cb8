#include "llama/files/matrices.h"

#include <algorithm>
#include <memory>

#include "ggml.h"
#include "gguf.h"
#include "llama/base/backend.h"
#include "llama/base/handles.h"
#include "llama/kernels/kernel_buffer.h"

namespace outrider::llama {
namespace {

// True when a single product over `name` uses the whole matrix: everything two-dimensional or more,
// except tables of which a token takes one row.
bool is_multiplied(const std::string& name, std::int64_t n_rows, bool tied_output) {
  if (n_rows <= 1) return false;
  if (name == "token_embd.weight") return tied_output;
  return name.find("position_embd") == std::string::npos &&
         name.find("token_types") == std::string::npos &&
         name.find("per_layer_token_embd") == std::string::npos;
}

std::int32_t experts_used(const gguf_context* gguf, const std::string& architecture) {
  const std::int64_t key = gguf_find_key(gguf, (architecture + ".expert_used_count").c_str());
  if (key < 0 || gguf_get_kv_type(gguf, key) != GGUF_TYPE_UINT32) return 1;
  return static_cast<std::int32_t>(std::clamp<std::uint32_t>(gguf_get_val_u32(gguf, key), 1, 4096));
}

}  // namespace

Result<std::vector<Matrix>> read_matrices(const std::string& path) {
  OUTRIDER_ASSIGN_OR_RETURN(const GgufHeader header, read_gguf_header(path));
  return read_matrices(path, header);
}

Result<std::vector<Matrix>> read_matrices(const std::string& path, const GgufHeader& header) {
  ensure_backend();
  ggml_context* tensors = nullptr;
  const GgufHandle gguf(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = &tensors}));
  const std::unique_ptr<ggml_context, decltype(&ggml_free)> owner(tensors, &ggml_free);
  if (!gguf || tensors == nullptr) return data_loss("'" + path + "' is damaged");
  const bool tied_output = ggml_get_tensor(tensors, "output.weight") == nullptr;
  std::vector<Matrix> matrices;
  for (ggml_tensor* tensor = ggml_get_first_tensor(tensors); tensor != nullptr;
       tensor = ggml_get_next_tensor(tensors, tensor)) {
    if (!is_multiplied(tensor->name, ggml_nrows(tensor), tied_output)) continue;
    Matrix matrix{.name = tensor->name,
                  .type = ggml_type_name(tensor->type),
                  .bytes = ggml_nbytes(tensor),
                  .elements = static_cast<std::uint64_t>(ggml_nelements(tensor)),
                  .columns = static_cast<std::uint64_t>(tensor->ne[0]),
                  .own_kernels_take_it = kernel_buffer_takes(tensor)};
    if (matrix.name.find("_exps") != std::string::npos) {
      matrix.experts = static_cast<std::int32_t>(std::max<std::int64_t>(1, tensor->ne[2]));
      matrix.experts_used = std::min(matrix.experts, experts_used(gguf.get(), header.architecture));
    }
    matrices.push_back(std::move(matrix));
  }
  return matrices;
}

}  // namespace outrider::llama
