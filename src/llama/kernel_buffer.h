// The buffer type behind llama/own_kernels.h: the only code that knows ggml's private headers.
#pragma once

#include <cstdint>
#include <string>

#include "ggml-backend.h"
#include "kernels/instruction_set.h"

namespace outrider::llama {

// Puts the buffer type in front of ggml's own. Returns why not, or an empty string.
std::string register_kernel_buffer(const kernels::InstructionSet& set);

// The buffer type, once registered; else null.
ggml_backend_buffer_type_t kernel_buffer_type();

// True when the buffer type holds such a matrix: a tensor of a file, with its name.
bool kernel_buffer_takes(const ggml_tensor* weights);

// Multiplies random matrices of every type through `set` and, for one type, through ggml, and
// compares with plain code, bit for bit. Returns the first difference, or an empty string.
std::string test_kernel_buffer(const kernels::InstructionSet& set);

// What the loading thread wants. (llama.cpp loads a model on the thread that asks for it.)
struct KernelLoad {
  bool wanted = false;
  std::uint64_t packed_bytes = 0;  // of what it loaded
  std::uint64_t file_bytes = 0;    // the same in the file
};
KernelLoad& kernel_load();

}  // namespace outrider::llama
