#include "llama/model/memory.h"

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "fit.h"
#include "llama/base/backend.h"
#include "llama/files/gguf_header.h"
#include "llama/files/model_file.h"
#include "llama/model/context_params.h"

namespace outrider::llama {
namespace {

// The weights of all files of a split model ("...-00001-of-00003.gguf"), from the first one's name.
Result<std::uint64_t> weight_bytes(const std::string& path, const GgufHeader& first) {
  std::uint64_t sum = first.tensor_bytes;
  const std::size_t at = path.rfind("-00001-of-");
  if (first.n_splits == 1 || at == std::string::npos) return sum;
  for (std::int32_t i = 2; i <= first.n_splits; ++i) {
    char number[16];
    std::snprintf(number, sizeof number, "-%05d-of-", i);
    std::string next = path;
    next.replace(at, 10, number);
    Result<GgufHeader> header = read_gguf_header(next);
    if (!header.ok()) return header.status();
    sum += header->tensor_bytes;
  }
  return sum;
}

}  // namespace

Result<MemoryEstimate> estimate_memory(const ModelOptions& options,
                                       const ContextSettings& settings) {
  Result<GgufHeader> header = read_gguf_header(options.path);
  if (!header.ok()) return header.status();
  OUTRIDER_RETURN_IF_ERROR(check_is_model(options.path, *header));
  Result<std::uint64_t> weights = weight_bytes(options.path, *header);
  if (!weights.ok()) return weights.status();
  for (const std::string& type : {settings.type_k, settings.type_v}) {
    if (!is_cache_type(type)) {
      return invalid_argument("'" + type + "' is not a cache type; the types are " +
                              cache_type_names());
    }
  }
  Result<ContextSizes> sizes =
      plan_sizes(options, settings, header->n_ctx_train, /*attention_only=*/true);
  if (!sizes.ok()) return sizes.status();

  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = options.n_gpu_layers;
  const llama_context_params context_params = make_params(*sizes, settings);
  const LogSink no_sink;
  const LogCapture log(no_sink);
  MemoryEstimate estimate{.weights = *weights};
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
