#include "llama/model/memory.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "fit.h"
#include "llama/base/backend.h"
#include "llama/files/gguf_header.h"
#include "llama/files/model_file.h"
#include "llama/model/context_params.h"

namespace outrider::llama {
namespace {

// The weights of all files of a split model.
Result<std::uint64_t> weight_bytes(const std::string& path, const GgufHeader& first) {
  std::uint64_t sum = first.tensor_bytes;
  for (const std::string& file : split_files(path, first.n_splits)) {
    if (file == path) continue;
    Result<GgufHeader> header = read_gguf_header(file);
    if (!header.ok()) return header.status();
    sum += header->tensor_bytes;
  }
  return sum;
}

// What both estimates begin with.
struct Looked {
  ContextSizes sizes;
  std::uint64_t weights = 0;
};

Result<Looked> look(const ModelOptions& options, const ContextSettings& settings,
                    const GgufHeader& header) {
  OUTRIDER_RETURN_IF_ERROR(check_is_model(options.path, header));
  OUTRIDER_RETURN_IF_ERROR(check_rope_base(header.architecture, settings));
  Result<std::uint64_t> weights = weight_bytes(options.path, header);
  if (!weights.ok()) return weights.status();
  for (const std::string& type : {settings.type_k, settings.type_v}) {
    if (!is_cache_type(type)) {
      return invalid_argument("'" + type + "' is not a cache type; the types are " +
                              cache_type_names());
    }
  }
  Result<ContextSizes> sizes =
      plan_sizes(options, settings,
                 {.n_ctx_train = header.n_ctx_train, .position_table = header.position_table});
  if (!sizes.ok()) return sizes.status();
  return Looked{*sizes, *weights};
}

// As llama.cpp rounds the number of cells.
std::uint64_t cells_of(const ContextSizes& sizes) {
  return (static_cast<std::uint64_t>(sizes.n_cells) + 255) / 256 * 256;
}

}  // namespace

Result<MemoryEstimate> estimate_memory_from_header(const ModelOptions& options,
                                                   const ContextSettings& settings,
                                                   const GgufHeader& header) {
  const Result<Looked> looked = look(options, settings, header);
  if (!looked.ok()) return looked.status();
  MemoryEstimate estimate{.weights = looked->weights};
  const auto row_bytes = [](const std::string& type, std::uint64_t elements) {
    return static_cast<std::uint64_t>(
        ggml_row_size(cache_type_of(type), static_cast<std::int64_t>(elements)));
  };
  estimate.cache = cells_of(looked->sizes) * (row_bytes(settings.type_k, header.k_elements()) +
                                              row_bytes(settings.type_v, header.v_elements())) +
                   header.states.bytes(looked->sizes.n_sequences);
  // Rows of logits, and of a pass the widest intermediate results: eight rows of the embedding's
  // size for the feed-forward part, a few more beside them.
  const std::uint64_t n_tokens = static_cast<std::uint64_t>(std::min(looked->sizes.n_batch, 512));
  estimate.compute = sizeof(float) * (static_cast<std::uint64_t>(looked->sizes.n_outputs) *
                                          static_cast<std::uint64_t>(header.n_vocab) +
                                      n_tokens * 12 * static_cast<std::uint64_t>(header.n_embd));
  return estimate;
}

Result<MemoryEstimate> estimate_memory(const ModelOptions& options,
                                       const ContextSettings& settings) {
  OUTRIDER_ASSIGN_OR_RETURN(const GgufHeader header, read_gguf_header(options.path));
  const Result<Looked> looked = look(options, settings, header);
  if (!looked.ok()) return looked.status();
  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = options.n_gpu_layers;
  ggml_backend_dev_t no_device = nullptr;
  if (options.n_gpu_layers == 0) model_params.devices = &no_device;  // as it is loaded
  // Layouts change nothing that is counted, and without our kernels AMX's may not suit the graph.
  model_params.use_extra_bufts = false;
  const llama_context_params context_params = make_params(looked->sizes, settings);
  const LogSink no_sink;
  const LogCapture log(no_sink);
  MemoryEstimate estimate{.weights = looked->weights};
  try {
    std::vector<ggml_backend_dev_t> devices;
    std::uint32_t n_layers = 0;
    std::uint32_t n_ctx_train = 0;
    std::uint32_t n_experts = 0;
    for (const common_device_memory_data& device : common_get_device_memory_data(
             options.path.c_str(), &model_params, &context_params, devices, n_layers, n_ctx_train,
             n_experts, GGML_LOG_LEVEL_WARN)) {
      estimate.cache += device.context;
      estimate.compute += device.compute;
    }
  } catch (const std::exception& error) {
    const std::string because = log.because();
    return internal_error("cannot estimate the memory that '" + options.path + "' needs" +
                          (because.empty() ? std::string(": ") + error.what() : because));
  }
  return estimate;
}

}  // namespace outrider::llama
