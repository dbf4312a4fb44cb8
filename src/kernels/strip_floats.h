// A strip of float weights (F32, F16, BF16) times some rows of activations: kernels/strip.h for
// weights that need no unpacking.
//
// Each output is two sums, over the even and the odd columns, each in order: a single sum would
// wait for itself, four cycles a column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/fetch_ahead.h"
#include "kernels/weight_type.h"

namespace outrider::kernels {

template <class S, WeightType kType>
struct FloatReader {
  static constexpr int kBits = kType == WeightType::kF32 ? 32 : 16;
  static constexpr int kBytes = kBits / 8 * S::kRows;
  static typename S::Floats read(const std::uint8_t* at) {
    if constexpr (kType == WeightType::kF16) return S::halves(at);
    if constexpr (kType == WeightType::kBf16) return S::bfloats(at);
    return S::load_floats(reinterpret_cast<const float*>(at));
  }
};

// Whether registers are too few for the sums of S::kTile rows. With AVX2 four rows kept some of
// their 16 sums in memory, and three some of 12 where the weights of two columns are read at once:
// without, 3, 4, 8 rows are 2.3, 1.5, 1.7 times as fast (F16, Zen 4).
template <class S>
inline constexpr bool kFewRegisters = requires {
  S::kFloatTile;
};

template <class S>
constexpr int float_tile() {
  if constexpr (kFewRegisters<S>) {
    return S::kFloatTile;
  } else {
    return S::kTile;
  }
}

// What is fetched ahead of weights of `bits` each with `n` rows: what `S` says for so many, but
// only where computing holds up the processor's own fetching. Zen 4, one thread, 60 to 100 MB,
// speed with 6,912 ahead of that without:
//   AVX512, F16, 3, 4, 5, 8, 16 rows 1.37, 1.38, 1.25, 1.3 to 1.8, 1.06; two rows 1.1 to 1.2, but
//   one 0.97; F32, 4, 5, 6, 7, 8 rows 0.7 to 0.9, 0.83 to 0.93, 1.06, 1.18, 1.4
//   AVX2, 2,304 ahead, F16, one and two rows 0.7 to 0.9; 6,912, F16 and F32, 3, 4, 8 rows 1.0 to 2
// Others were not measured with one row and two.
template <class S>
Ahead float_ahead(int n, int bits) {
  if constexpr (requires { S::ahead(n, bits); }) {
    const int by_itself = bits == 32 && !kFewRegisters<S> ? 5 : 2;
    if (n > by_itself) return S::ahead(n, bits);
  }
  return {.bytes = 0};
}

template <class S, class Reader, int kN>
void multiply_float_tile(const std::uint8_t* weights, std::int64_t n_columns,
                         const std::uint8_t* activations, std::size_t stride, Ahead ahead,
                         float* out) {
  using Floats = typename S::Floats;
  Floats even[kN];
  Floats odd[kN];
  // All loops over them are unrolled: or GCC keeps them in memory, which takes 2.4 times as long.
#pragma GCC unroll 8
  for (int c = 0; c < kN; ++c) even[c] = odd[c] = S::set_float(0.0F);
  const auto row = [&](int c) {
    return reinterpret_cast<const float*>(activations + static_cast<std::size_t>(c) * stride);
  };
  std::int64_t k = 0;
  for (; k + 1 < n_columns; k += 2, weights += 2 * Reader::kBytes) {
    if constexpr (kN > 1) {  // a single row is left to the processor
      if (ahead.bytes > 0) fetch<2 * Reader::kBytes>(weights, ahead);
    }
    const Floats w0 = Reader::read(weights);
    if constexpr (kFewRegisters<S>) {
#pragma GCC unroll 8
      for (int c = 0; c < kN; ++c) even[c] = S::fma(w0, S::set_float(row(c)[k]), even[c]);
      const Floats w1 = Reader::read(weights + Reader::kBytes);
#pragma GCC unroll 8
      for (int c = 0; c < kN; ++c) odd[c] = S::fma(w1, S::set_float(row(c)[k + 1]), odd[c]);
    } else {
      const Floats w1 = Reader::read(weights + Reader::kBytes);
#pragma GCC unroll 8
      for (int c = 0; c < kN; ++c) {
        even[c] = S::fma(w0, S::set_float(row(c)[k]), even[c]);
        odd[c] = S::fma(w1, S::set_float(row(c)[k + 1]), odd[c]);
      }
    }
  }
  if (k < n_columns) {
    const Floats w0 = Reader::read(weights);
#pragma GCC unroll 8
    for (int c = 0; c < kN; ++c) even[c] = S::fma(w0, S::set_float(row(c)[k]), even[c]);
  }
#pragma GCC unroll 8
  for (int c = 0; c < kN; ++c) S::store_floats(out + c * S::kRows, S::add(even[c], odd[c]));
}

// InstructionSet::multiply for the float types.
template <class S, class Reader>
void multiply_float_strip(const std::uint8_t* strip, std::int64_t n_columns,
                          const void* activations, std::size_t stride, int n, float* out) {
  constexpr int kTile = float_tile<S>();
  const int n_tiles = (n + kTile - 1) / kTile;
  const Ahead ahead = float_ahead<S>(n, Reader::kBits);
  for (int tile = 0; tile < n_tiles; ++tile) {
    const int begin = tile * n / n_tiles;
    const auto* rows =
        static_cast<const std::uint8_t*>(activations) + static_cast<std::size_t>(begin) * stride;
    const int size = (tile + 1) * n / n_tiles - begin;
    [&]<std::size_t... kI>(std::index_sequence<kI...>) {
      ((size == static_cast<int>(kI) + 1
            ? multiply_float_tile<S, Reader, kI + 1>(strip, n_columns, rows, stride,
                                                     tile == 0 ? ahead : Ahead{.bytes = 0},
                                                     out + begin * S::kRows)
            : void()),
       ...);
    }
    (std::make_index_sequence<kTile>());
  }
}

}  // namespace outrider::kernels
