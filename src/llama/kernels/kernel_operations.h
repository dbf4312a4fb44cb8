// What ggml's threads compute with packed weights: products, dense and with experts, and the
// attention that goes with them. For llama/kernels/kernel_buffer.cc, which says when; there is
// nothing here where ggml's private headers do not fit.
#pragma once

#include <cstddef>

#include "ggml.h"
#include "kernels/instruction_set.h"
#include "kernels/packed.h"

namespace ggml::cpu {
class tensor_traits;
}

namespace outrider::llama {

// What is computed with; null until kernels are registered.
const kernels::InstructionSet*& kernel_set();

// How a matrix of a type that the kernels know lies packed.
kernels::PackedLayout kernel_layout(const ggml_tensor* weights);

// The memory that `n_threads` threads share for an operation, and any fewer of them.
std::size_t product_bytes(const ggml_tensor* op, int n_threads);
std::size_t attention_bytes(const ggml_tensor* op, int n_threads);

// The operations as ggml calls them. Never destroyed: a thread that computes while the process ends
// still asks for them.
ggml::cpu::tensor_traits* product_operation();
ggml::cpu::tensor_traits* attention_operation();

}  // namespace outrider::llama
