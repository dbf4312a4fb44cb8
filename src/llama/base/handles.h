// Owners of llama.cpp's objects. For this layer's own files only.
#pragma once

#include <memory>
#include <utility>

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

// One with the same state; null for null.
inline SamplerHandle clone_sampler(const SamplerHandle& sampler) {
  return SamplerHandle(sampler ? llama_sampler_clone(sampler.get()) : nullptr);
}

// A sampler that is copied with its state: a class with one can leave its copying to the compiler,
// which forgets no member.
class CopyableSampler {
 public:
  CopyableSampler() = default;
  explicit CopyableSampler(SamplerHandle sampler) : sampler_(std::move(sampler)) {}
  CopyableSampler(const CopyableSampler& other) : sampler_(clone_sampler(other.sampler_)) {}
  CopyableSampler(CopyableSampler&&) = default;
  CopyableSampler& operator=(const CopyableSampler&) = delete;
  CopyableSampler& operator=(CopyableSampler&&) = default;
  ~CopyableSampler() = default;

  llama_sampler* get() const { return sampler_.get(); }

 private:
  SamplerHandle sampler_;  // null: none
};

}  // namespace outrider::llama
