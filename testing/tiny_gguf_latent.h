// Writes a tiny model with latent attention (MLA), of llama.cpp's architecture deepseek2 (DeepSeek
// V2 and V3, Kimi K2, GLM 4.7 Flash).
//
// Of each token the cache holds one row for all heads: 64 numbers of which each head makes its keys
// and values, and 32 that carry the position. The values are the first part of the cached keys, so
// llama.cpp takes one type for both. All matrices are random and quantised but those of norms; the
// layers have no experts. The text is that of random weights: nothing is asserted about it.
//
// Tested by open_target_exact_test.cc.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "testing/tiny_gguf.h"
#include "testing/tiny_vocabulary.h"

namespace outrider::testing {

struct TinyLatentOptions {
  int n_layer = 2;  // at least 1
  int n_ctx_train = 4096;
  WeightType weight_type = WeightType::kQ8_0;
  std::uint64_t seed = 1;
  TinyVocabularyOptions vocabulary;
};

// Writes the model at `path`, whole or not at all. kInvalidArgument, naming the option, for what
// cannot be.
Status write_tiny_latent(const std::string& path, const TinyLatentOptions& options);

}  // namespace outrider::testing
