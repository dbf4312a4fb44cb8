// The numbers of tiny models: counter-based Gaussians and plain quantisation, the same bytes on
// every machine (no state, no library rounding, no product that a compiler may fuse with a sum).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "testing/tiny_gguf.h"

namespace outrider::testing {

// A key per tensor, from a seed and the tensor's name.
std::uint64_t tensor_key(std::uint64_t seed, std::string_view name);

// Approximately normal with mean 0 and standard deviation 1, in [-3.47, 3.47] (the sum of four
// uniform numbers); a pure function of (key, index).
double tiny_gaussian(std::uint64_t key, std::uint64_t index);

// Root mean square; 0 for an empty vector.
double root_mean_square(const std::vector<float>& values);

// `values` as GGUF stores them: little-endian floats, or blocks of 32 (Q8_0: a half scale and 32
// bytes, round to nearest; Q4_0: a half scale and 16 bytes of nibbles, the sign of the scale such
// that the value of largest magnitude maps to -8).
// REQUIRES: values.size() % 32 == 0 unless `type` is kF32.
std::vector<std::uint8_t> encode_weights(const std::vector<float>& values, WeightType type);

}  // namespace outrider::testing
