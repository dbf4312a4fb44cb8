// Owners of llama.cpp's objects. For this layer's own files only.
#pragma once

#include <memory>

#include "gguf.h"
#include "llama.h"

namespace outrider::llama {

struct GgufDeleter {
  void operator()(gguf_context* p) const { gguf_free(p); }
};
struct ModelDeleter {
  void operator()(::llama_model* p) const { llama_model_free(p); }
};
struct ContextDeleter {
  void operator()(llama_context* p) const { llama_free(p); }
};
struct SamplerDeleter {
  void operator()(llama_sampler* p) const { llama_sampler_free(p); }
};

using GgufHandle = std::unique_ptr<gguf_context, GgufDeleter>;
using ModelHandle = std::unique_ptr<::llama_model, ModelDeleter>;
using ContextHandle = std::unique_ptr<llama_context, ContextDeleter>;
using SamplerHandle = std::unique_ptr<llama_sampler, SamplerDeleter>;

}  // namespace outrider::llama
