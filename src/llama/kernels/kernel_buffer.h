// The buffer type behind llama/kernels/own_kernels.h. With what it computes (kernel_operations.cc)
// and llama/kernels/kernel_worker.h the only code that knows ggml's private headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/mapped_pages.h"
#include "ggml-backend.h"
#include "kernels/instruction_set.h"

namespace outrider::llama {

// Puts the buffer type in front of ggml's own. Returns why not, or an empty string.
std::string register_kernel_buffer(const kernels::InstructionSet& set);

// The buffer type, once registered; else null.
ggml_backend_buffer_type_t kernel_buffer_type();

// True when the buffer type holds such a matrix: a tensor of a file, with its name.
bool kernel_buffer_takes(const ggml_tensor* weights);

// Of such a matrix: how much memory it takes packed, and the packing, from `bytes` as in the file.
// It is packed with as many threads as there are processors to use.
std::size_t kernel_packed_bytes(const ggml_tensor* weights);
void kernel_pack(const ggml_tensor* weights, const void* bytes, void* packed);

// Where such a matrix of a model, or of a worker's, lies packed.
const void* kernel_packed_data(const ggml_tensor* weights);

// True for names of matrices with which graphs do nothing but multiply.
bool kernel_only_multiplies(std::string_view name);

// Compares with plain code, bit for bit: random matrices of every type multiplied with `set`, and
// attention; then what ggml runs with the set that is registered, which are products of one type,
// dense and with experts, and attention over each type of cache that is taken. Returns the first
// difference, or an empty string. Only behind register_kernel_buffer().
std::string test_kernel_buffer(const kernels::InstructionSet& set);

// What the loading thread wants. (llama.cpp loads a model on the thread that asks for it.)
struct KernelLoad {
  bool wanted = false;
  bool locks = false;              // what is packed must not be swapped out
  bool mapped = true;              // the file may be; else each matrix is read into new memory
  int lock_error = 0;              // errno of a buffer that could not be locked
  std::uint64_t packed_bytes = 0;  // of what it loaded
  std::uint64_t file_bytes = 0;    // the same in the file
  MappedPages pages;               // where they were last read from
  std::int32_t n_processors = 0;   // to pack with; 0: not asked yet
};
KernelLoad& kernel_load();

}  // namespace outrider::llama
