// A strip of float weights (F32, F16, BF16) times some rows of activations: kernels/strip.h for
// weights that need no unpacking.
//
// Each output is two sums, over the even and the odd columns, each in order: a single sum would
// wait for itself, four cycles a column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/weight_type.h"

namespace outrider::kernels {

template <class S, WeightType kType>
struct FloatReader {
  static constexpr int kBytes = (kType == WeightType::kF32 ? 4 : 2) * S::kRows;
  static typename S::Floats read(const std::uint8_t* at) {
    if constexpr (kType == WeightType::kF16) return S::halves(at);
    if constexpr (kType == WeightType::kBf16) return S::bfloats(at);
    return S::load_floats(reinterpret_cast<const float*>(at));
  }
};

template <class S, class Reader, int kN>
void multiply_float_tile(const std::uint8_t* weights, std::int64_t n_columns,
                         const std::uint8_t* activations, std::size_t stride, float* out) {
  using Floats = typename S::Floats;
  Floats even[kN];
  Floats odd[kN];
  for (int c = 0; c < kN; ++c) even[c] = odd[c] = S::set_float(0.0F);
  const auto row = [&](int c) {
    return reinterpret_cast<const float*>(activations + static_cast<std::size_t>(c) * stride);
  };
  std::int64_t k = 0;
  for (; k + 1 < n_columns; k += 2, weights += 2 * Reader::kBytes) {
    const Floats w0 = Reader::read(weights);
    const Floats w1 = Reader::read(weights + Reader::kBytes);
#pragma GCC unroll 8
    for (int c = 0; c < kN; ++c) {
      even[c] = S::fma(w0, S::set_float(row(c)[k]), even[c]);
      odd[c] = S::fma(w1, S::set_float(row(c)[k + 1]), odd[c]);
    }
  }
  if (k < n_columns) {
    const Floats w0 = Reader::read(weights);
    for (int c = 0; c < kN; ++c) even[c] = S::fma(w0, S::set_float(row(c)[k]), even[c]);
  }
  for (int c = 0; c < kN; ++c) S::store_floats(out + c * S::kRows, S::add(even[c], odd[c]));
}

// InstructionSet::multiply for the float types.
template <class S, class Reader>
void multiply_float_strip(const std::uint8_t* strip, std::int64_t n_columns,
                          const void* activations, std::size_t stride, int n, float* out) {
  const int n_tiles = (n + S::kTile - 1) / S::kTile;
  for (int tile = 0; tile < n_tiles; ++tile) {
    const int begin = tile * n / n_tiles;
    const auto* rows =
        static_cast<const std::uint8_t*>(activations) + static_cast<std::size_t>(begin) * stride;
    const int size = (tile + 1) * n / n_tiles - begin;
    [&]<std::size_t... kI>(std::index_sequence<kI...>) {
      ((size == static_cast<int>(kI) + 1
            ? multiply_float_tile<S, Reader, kI + 1>(strip, n_columns, rows, stride,
                                                     out + begin * S::kRows)
            : void()),
       ...);
    }
    (std::make_index_sequence<S::kTile>());
  }
}

}  // namespace outrider::kernels
