#include "llama/files/adapter_matrices.h"

#include <gguf.h>

#include <set>
#include <string_view>

#include "llama/base/handles.h"

namespace outrider::llama {
namespace {

// REQUIRES: the file's header was read, so that llama.cpp can read it.
Result<GgufHandle> open_tensors(const std::string& path) {
  GgufHandle gguf(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
  if (!gguf) return data_loss("'" + path + "' is damaged");
  return gguf;
}

// "blk.3.ffn_up.weight": "blk.3.ffn_up"; of a matrix of experts, or no feed-forward part's: empty.
std::string_view feed_forward(std::string_view name) {
  constexpr std::string_view kEnd = ".weight";
  if (!name.ends_with(kEnd)) return "";
  name.remove_suffix(kEnd.size());
  for (const std::string_view part : {".ffn_up", ".ffn_gate", ".ffn_down", ".ffn_up_shexp",
                                      ".ffn_gate_shexp", ".ffn_down_shexp"}) {
    if (name.ends_with(part)) return name;
  }
  return "";
}

// The names, without ".weight", of feed-forward matrices in NVFP4 that have a factor of their own.
Result<std::set<std::string>> scaled_matrices(const std::string& path, const GgufHeader& header) {
  std::set<std::string> in_nvfp4;
  std::set<std::string> names;
  for (const std::string& file : split_files(path, header.n_splits)) {
    OUTRIDER_ASSIGN_OR_RETURN(const GgufHandle gguf, open_tensors(file));
    for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf.get()); ++i) {
      const std::string name = gguf_get_tensor_name(gguf.get(), i);
      names.insert(name);
      const std::string_view matrix = feed_forward(name);
      const bool is = gguf_get_tensor_type(gguf.get(), i) == GGML_TYPE_NVFP4;
      if (is && !matrix.empty()) in_nvfp4.emplace(matrix);
    }
  }
  std::erase_if(in_nvfp4,
                [&](const std::string& matrix) { return !names.contains(matrix + ".scale"); });
  return in_nvfp4;
}

}  // namespace

Status check_adapted_matrices(const std::string& path, const GgufHeader& header,
                              const std::vector<std::string>& adapters) {
  if (adapters.empty()) return Status();
  OUTRIDER_ASSIGN_OR_RETURN(const std::set<std::string> scaled, scaled_matrices(path, header));
  if (scaled.empty()) return Status();
  for (const std::string& adapter : adapters) {
    OUTRIDER_ASSIGN_OR_RETURN(const GgufHandle gguf, open_tensors(adapter));
    for (const std::string& matrix : scaled) {
      if (gguf_find_tensor(gguf.get(), (matrix + ".weight.lora_a").c_str()) < 0) continue;
      return unsupported("the adapter '" + adapter + "' changes " + matrix +
                         ".weight, which the model has in NVFP4 with a factor beside it; llama.cpp "
                         "takes no adapter for such; give the model in another type");
    }
  }
  return Status();
}

}  // namespace outrider::llama
