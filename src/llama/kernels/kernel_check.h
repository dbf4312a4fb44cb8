// Parts of the test that own kernels pass before they are used (test_kernel_buffer() of
// llama/kernels/kernel_buffer.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/instruction_set.h"
#include "kernels/weight_type.h"

namespace outrider::llama {

// `n_weights` of random blocks: every sign, every value, every scale below 2. Others for another
// `which`. `n_weights` is a multiple of the type's block.
std::vector<std::uint8_t> some_weights(kernels::WeightType type, std::int64_t n_weights,
                                       std::uint64_t which);

// [n], between -1 and 1.
std::vector<float> some_activations(std::int64_t n);

// A matrix of `n_rows` rows of `n_columns`, as in a file, times the rows of activations `x`, [..,
// n_columns], with the parts that the adapter is made of, but without ggml: [.., n_rows].
std::vector<float> product(const kernels::InstructionSet& set, kernels::WeightType type,
                           std::int64_t n_rows, std::int64_t n_columns,
                           const std::vector<std::uint8_t>& bytes, const std::vector<float>& x);

// True for the same floats, bit for bit.
bool same(const std::vector<float>& a, const std::vector<float>& b);

// Runs products, dense and with experts, and attention over each type of cache as graphs of ggml's,
// with the set that is registered, and compares with `plain`, bit for bit. Returns the first
// difference, or an empty string.
std::string test_through_ggml(const kernels::InstructionSet& plain);

}  // namespace outrider::llama
