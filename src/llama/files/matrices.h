// The matrices of a model that tokens are multiplied with, read from the headers of its files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "llama/files/gguf_header.h"

namespace outrider::llama {

struct Matrix {
  std::string name;  // "blk.0.ffn_up.weight"
  std::string type;  // ggml's: "q4_K", "f16"
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
  std::uint64_t columns = 0;         // weights of a row
  std::int32_t experts = 1;          // matrices that it consists of: experts, of which each token
  std::int32_t experts_used = 1;     // takes so many
  bool own_kernels_take_it = false;  // where there are own kernels (llama/kernels/own_kernels.h)
};

// Of all files of a split model, whose first is at `path`, in their sequence. Tables of which a
// token only takes a row do not count; one that is the output as well does. Nor does what is added
// (biases of experts), or what recurrent layers convolve or scan with. The weights stay on the
// disk. Errors: read_gguf_header()'s, of any of the files.
Result<std::vector<Matrix>> read_matrices(const std::string& path);

// The same where the first file's header was read: each time takes 12 ms for 49,000 tokens.
Result<std::vector<Matrix>> read_matrices(const std::string& path, const GgufHeader& header);

}  // namespace outrider::llama
