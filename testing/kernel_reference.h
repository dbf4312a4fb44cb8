// What src/kernels must compute, bit for bit: written from the description of each type, one weight
// at a time, without packing, vectors or threads.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/activations.h"
#include "kernels/weight_type.h"

namespace outrider::testing {

// A row of a GGUF file taken apart. weight[k] = scale * value[k] - minimum, with those of k's
// group.
struct ReferenceRow {
  int group = 0;               // weights that share a scale; 0 for the float types
  std::vector<float> weight;   // the float types only
  std::vector<int> value;      // less the type's zero
  std::vector<float> scale;    // of each group
  std::vector<float> minimum;  // of each group; empty when the type has none
  float dequantised(std::size_t k) const;
};
ReferenceRow reference_row(kernels::WeightType type, const std::uint8_t* bytes,
                           std::int64_t n_columns);

// Activations, in groups of 32.
struct ReferenceActivations {
  std::vector<float> scale;
  std::vector<int> value;
};
ReferenceActivations reference_activations(const std::vector<float>& x);

// One output: the product of a row of weights and a row of activations.
float reference_product(const ReferenceRow& row, const std::vector<float>& x,
                        const ReferenceActivations& activations);

// Rows as a GGUF file has them, [n_rows, row bytes]: random bytes, with scales that are finite.
// `n_columns` is a multiple of the type's block.
std::vector<std::uint8_t> random_rows(kernels::WeightType type, std::int64_t n_rows,
                                      std::int64_t n_columns, std::mt19937_64* random);

}  // namespace outrider::testing
