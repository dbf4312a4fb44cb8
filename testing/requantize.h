// Converts the weights of a GGUF file to another type, by llama.cpp's own quantiser.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace outrider::testing {

struct RequantizeOptions {
  std::string type;   // as llama-quantize takes it, in any case: "Q4_0", "q4_k_m"
  bool pure = false;  // every matrix in that type, no better one for some of them
  // Of the output matrix and the embedding, ggml's name: "q4_0". Empty: as the type chooses.
  std::string output_type;
  int n_threads = 0;  // 0: as many as the machine has
};

// Tensors done and in all. Called from the calling thread.
using RequantizeProgress = std::function<void(int done, int total)>;

// The type names that RequantizeOptions takes, in the order in which llama-quantize lists them.
std::vector<std::string> requantize_types();

// Writes `input`, quantised already or not, as `options.type` to `output`: whole or not at all (a
// temporary name, flushed to the disk, renamed). An existing `output` is replaced.
// Fails with kInvalidArgument (unknown type, same file, not a GGUF, output not writable),
// kNotFound, kDataLoss, or kInternal with llama.cpp's own words (among them a full disk, which it
// does not tell apart, and a type that needs an importance matrix). On failure `output` is as it
// was. Takes over llama.cpp's log while it runs: no other use of llama.cpp at the same time.
Status requantize_gguf(const std::string& input, const std::string& output,
                       const RequantizeOptions& options,
                       const RequantizeProgress& progress = nullptr);

}  // namespace outrider::testing
