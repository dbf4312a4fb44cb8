// How much memory a model will need, before any of it is taken.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "llama/files/gguf_header.h"
#include "llama/model/llama_model.h"
#include "model/model_options.h"

namespace outrider::llama {

struct MemoryEstimate {
  std::uint64_t weights = 0;  // bytes, as all below; all devices together
  std::uint64_t cache = 0;    // keys and values of all cells, and states of recurrent layers
  std::uint64_t compute = 0;  // intermediate results and logits

  std::uint64_t total() const { return weights + cache + compute; }
};

// For a model at options.path, opened as LlamaModel::create would with these settings. llama.cpp
// plans all allocations and makes none, which takes about as long as reading the vocabulary.
// Errors: as ModelFile::load() and LlamaModel::create(). Not while another thread uses llama.cpp:
// its log is redirected meanwhile.
Result<MemoryEstimate> estimate_memory(const ModelOptions& options,
                                       const ContextSettings& settings);

// The same from the header of the file at options.path, so that other threads may use llama.cpp
// meanwhile: weights and cache as above (layers with a sliding window keep all cells, too),
// `compute` roughly. Of a split model the other files' headers are read.
Result<MemoryEstimate> estimate_memory_from_header(const ModelOptions& options,
                                                   const ContextSettings& settings,
                                                   const GgufHeader& header);

}  // namespace outrider::llama
