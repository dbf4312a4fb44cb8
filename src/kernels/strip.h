// A strip of packed weights times some rows of activations, for one instruction set `S`.
//
// Idea. The strip is worked on in chunks of 256 columns, and each chunk with all rows of
// activations, a few rows (a tile) at a time with their sums in registers: a step of several tokens
// reads each weight once from memory. Each tile unpacks the weights into registers; where registers
// are few, several tiles' weights are unpacked once, into 8 KiB that stay in the first-level cache.
//
// `S` wraps the instructions (kernels/simd_*.h): vectors of bytes and integers with 4 * R bytes, of
// R floats, and
//   load, store, load_floats, store_floats
//   move_bits<from, to, width>(v)  of every byte the bits from `from` on, put at `to`; else 0
//   lookup(table, v)               table[v] for bytes below 16; `table` has 16 bytes
//   dot<values, n>(start, v, q)    per lane r: start + the sum over j < n and e < 4 of
//                                  v[j][4r + e] * q[4j + e]
//   Dots<values, n>                dot of n rows with the same vectors, which come one by one:
//                                  begin(start); add<j, p>(v, row) for j = 0, 1, ..., `row`(c) the
//                                  four activations that row c has for it, in kPasses (1 or 2)
//                                  passes p over all of them; then sum(c, start). `start`(c) is
//                                  what row c's sums begin with; one of the two takes it. Left out
//                                  where registers hold all vectors of a group beside the sums
//   halves, unsigned_bytes, signed_bytes, exponents   R header fields as floats
//   kTile, kUnpacksOnce            rows of a tile; whether several tiles unpack once, to memory
//   kFloatTile                     rows of a tile of float weights, where registers are too few
//                                  for the sums of kTile; else left out (kernels/strip_floats.h)
//   ahead(n, bits)                 what is fetched ahead with n rows; may be left out
//                                  (kernels/fetch_ahead.h)
//   largest(x, y)                  x > y ? x : y
//   transpose<half>(read, out, s)  with R / 2 vectors read(i), and of their lanes the first (half
//                                  0) or second R / 2: out[j * s + i] = lane j of them in read(i)
//   power_of_two(v)                2^n for v = 1.5 * 2^23 + n, -127 <= n <= 0; zero for -127
//   multiply, add, fma, negative, to_float, either, `set` of one value
// and, where an instruction multiplies with two rows of activations at once,
//   pair_columns<n>(v)             vectors rearranged as that instruction takes them
//   dot_pair<n>(starts, v, qs, sums)   dot of such vectors, with two rows
//
// Only the files set_*.cc include this, each compiled for its instructions. Nothing here may call a
// function of the standard library that is not part of the compiler: the linker keeps one copy of
// an inline function, which may be that with instructions the processor lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/activations.h"
#include "kernels/fetch_ahead.h"
#include "kernels/instruction_set.h"
#include "kernels/strip_readers.h"
#include "kernels/weight_type.h"

namespace outrider::kernels {

// What a product needs to know of a type.
template <Values kV, int kScaleGroup, bool kMin>
struct Shape {
  static constexpr Values kValues = kV;
  static constexpr int kParts = kGroup / kScaleGroup;  // scales of a group
  static constexpr bool kMinimum = kMin;
};

// The part of a strip that is worked on, up to 256 columns, and the rows it meets.
template <class S>
struct Chunk {
  const Unpacked<S>* weights;  // scales and minimums
  const std::uint8_t* values;  // packed or unpacked: what the Reader reads
  int n_groups;
  const std::uint8_t* activations;  // ActivationGroup, [rows, n_groups]
  std::size_t stride;               // bytes from row to row
  Ahead ahead;                      // of packed values that are read
  // Where each tile fetches a part of what comes later: this one's part, with each group so many
  // bytes, a multiple of 64; else 0.
  const std::uint8_t* later;
  int later_bytes;
};

// How a tile fetches what comes later: all of it with the first vector of a group, or spread over
// the group's vectors, all or a part of it.
enum class Fetching : std::uint8_t { kAtOnce, kSpread, kPartSpread };

// What is to be fetched with vector `kJ` of group `g`: of its `part` bytes at `later`, or ahead.
template <class S, class Reader, Fetching kFetching, int kJ>
[[gnu::always_inline]] inline void fetch_beside_vector(const Chunk<S>& chunk, int g,
                                                       const std::uint8_t* later, int part) {
  constexpr int kLines = Reader::kGroupBytes / 64;
  if constexpr (kFetching == Fetching::kSpread) {
    constexpr int kFirst = kJ * kLines / kVectors;
    constexpr int kBytes = 64 * ((kJ + 1) * kLines / kVectors - kFirst);
    fetch<kBytes>(chunk.values + g * Reader::kGroupBytes + 64 * kFirst, chunk.ahead);
  } else if constexpr (kFetching == Fetching::kPartSpread) {
    // As often as the largest part, half of a group, has lines: without a branch between products.
    // The lines of a smaller one are asked for more than once.
    constexpr int kMost = (kLines + 1) / 2;
    static_assert(kMost <= kVectors);
    constexpr int kEach = kVectors / kMost;
    constexpr int kI = kJ / kEach;
    if constexpr (kJ % kEach == 0 && kI < kMost) fetch<64>(later + kI * part / kMost, {.bytes = 0});
  }
}

// What is to be fetched while group `g` is multiplied, all at once.
template <class S, class Reader>
[[gnu::always_inline]] inline void fetch_beside(const Chunk<S>& chunk, int g) {
  if constexpr (Reader::kFetches) {
    if (chunk.later_bytes == 0) {
      fetch<Reader::kGroupBytes>(chunk.values + g * Reader::kGroupBytes, chunk.ahead);
      return;
    }
  }
  const std::uint8_t* later = chunk.later + g * chunk.later_bytes;
  for (int i = 0; i < chunk.later_bytes; i += 64) fetch<64>(later, {.bytes = i});
}

// `sum` and the products `dot` of part `part` of group `g` with `a`, times their scales.
template <class S, class kShape>
[[gnu::always_inline]] inline typename S::Floats add_scaled(const Unpacked<S>& weights, int g,
                                                            int part, const ActivationGroup& a,
                                                            typename S::Ints dot,
                                                            typename S::Floats sum) {
  const typename S::Floats scale =
      S::multiply(S::load_floats(weights.scale[g][part]), S::set_float(a.scale));
  sum = S::fma(S::to_float(dot), scale, sum);
  if constexpr (kShape::kMinimum) {
    const typename S::Floats total = S::set_float_bits(a.offset[part]);
    sum = S::fma(S::load_floats(weights.minimum[g][part]), total, sum);
  }
  return sum;
}

// One part of a group for multiply_tile_by_vectors; `kJ` are the numbers of its vectors.
template <class S, class Reader, class kShape, int kPart, int kN, Fetching kFetching,
          std::size_t... kJ>
[[gnu::always_inline]] inline void add_part(const Chunk<S>& chunk, int g,
                                            const ActivationGroup* const* a,
                                            float (*sums)[S::kRows],
                                            std::index_sequence<kJ...> /*vectors*/) {
  const std::uint8_t* group = chunk.values + g * Reader::kGroupBytes;
  constexpr int kFirst = kPart * static_cast<int>(sizeof...(kJ));
  const auto start = [&](int c) { return kShape::kMinimum ? 0 : a[c]->offset[kPart]; };
  typename S::template Dots<kShape::kValues, kN> dots;
  dots.begin(start);
  const std::uint8_t* later = chunk.later + g * chunk.later_bytes;
  const auto first_pass = [&]<int kVector>() __attribute__((always_inline)) {
    fetch_beside_vector<S, Reader, kFetching, kVector>(chunk, g, later, chunk.later_bytes);
    dots.template add<kVector - kFirst, 0>(Reader::template vector<kVector>(group),
                                           [&](int c) { return a[c]->value + 4 * kVector; });
  };
  (first_pass.template operator()<kFirst + kJ>(), ...);
  if constexpr (dots.kPasses == 2) {
    // As if elsewhere: or GCC keeps what it has read of them, in memory of its own.
    const ActivationGroup* again[kN];
    for (int c = 0; c < kN; ++c) {
      again[c] = a[c];
      asm("" : "+r"(again[c]));
    }
    (dots.template add<kJ, 1>(Reader::template vector<kFirst + kJ>(group),
                              [&](int c) { return again[c]->value + 4 * (kFirst + kJ); }),
     ...);
  }
#pragma GCC unroll 8
  for (int c = 0; c < kN; ++c) {
    const auto dot = dots.sum(c, start);
    S::store_floats(sums[c], add_scaled<S, kShape>(*chunk.weights, g, kPart, *a[c], dot,
                                                   S::load_floats(sums[c])));
  }
}

// multiply_tile for kVectorByVector. The floats' sums stay in memory, so that the integers' have
// the registers; aligned, since a store over the end of a page costs as much as half a group.
template <class S, class Reader, class kShape, int kN, Fetching kFetching>
void multiply_tile_by_vectors(const Chunk<S>& chunk, float* out) {
  alignas(64) float sums[kN][S::kRows];
  for (int c = 0; c < kN; ++c) S::store_floats(sums[c], S::load_floats(out + c * S::kRows));
  const std::make_index_sequence<kVectors / kShape::kParts> vectors;
  for (int g = 0; g < chunk.n_groups; ++g) {
    if constexpr (kFetching == Fetching::kAtOnce) fetch_beside<S, Reader>(chunk, g);
    const ActivationGroup* a[kN];
    for (int c = 0; c < kN; ++c) {
      const std::uint8_t* row = chunk.activations + static_cast<std::size_t>(c) * chunk.stride;
      a[c] = reinterpret_cast<const ActivationGroup*>(row) + g;
    }
    add_part<S, Reader, kShape, 0, kN, kFetching>(chunk, g, a, sums, vectors);
    if constexpr (kShape::kParts == 2) {
      add_part<S, Reader, kShape, 1, kN, kFetching>(chunk, g, a, sums, vectors);
    }
  }
  for (int c = 0; c < kN; ++c) S::store_floats(out + c * S::kRows, S::load_floats(sums[c]));
}

// Adds the products of the chunk and `kN` rows of activations to `sums`, [kN, R].
template <class S, class Reader, class kShape, int kN>
void multiply_tile(const Chunk<S>& chunk, float* sums) {
  using Floats = typename S::Floats;
  constexpr int kOfPart = kVectors / kShape::kParts;
  Floats sum[kN];
  for (int c = 0; c < kN; ++c) sum[c] = S::load_floats(sums + c * S::kRows);
  for (int g = 0; g < chunk.n_groups; ++g) {
    const std::uint8_t* group = chunk.values + g * Reader::kGroupBytes;
    fetch_beside<S, Reader>(chunk, g);
    typename S::Bytes v[kVectors];
    Reader::read(group, v);
#pragma GCC unroll 8
    for (int c = 0; c < kN; ++c) {
      const std::uint8_t* row = chunk.activations + static_cast<std::size_t>(c) * chunk.stride;
      const auto* a = reinterpret_cast<const ActivationGroup*>(row) + g;
#pragma GCC unroll 2
      for (int part = 0; part < kShape::kParts; ++part) {
        const auto start = S::set_int(kShape::kMinimum ? 0 : a->offset[part]);
        const auto dot = S::template dot<kShape::kValues, kOfPart>(start, v + part * kOfPart,
                                                                   a->value + part * kOfPart * 4);
        sum[c] = add_scaled<S, kShape>(*chunk.weights, g, part, *a, dot, sum[c]);
      }
    }
  }
  for (int c = 0; c < kN; ++c) S::store_floats(sums + c * S::kRows, sum[c]);
}

// multiply_tile with the rows of activations two at a time, and values as pair_columns leaves them.
template <class S, class kShape, int kN>
void multiply_tile_in_pairs(const Chunk<S>& chunk, float* sums) {
  using Floats = typename S::Floats;
  constexpr int kOfPart = kVectors / kShape::kParts;
  Floats sum[kN];
  for (int c = 0; c < kN; ++c) sum[c] = S::load_floats(sums + c * S::kRows);
  for (int g = 0; g < chunk.n_groups; ++g) {
    typename S::Bytes v[kVectors];
    fetch_beside<S, UnpackedReader<S>>(chunk, g);
    UnpackedReader<S>::read(chunk.values + g * UnpackedReader<S>::kGroupBytes, v);
    const auto group = [&](int c) {
      const std::uint8_t* row = chunk.activations + static_cast<std::size_t>(c) * chunk.stride;
      return reinterpret_cast<const ActivationGroup*>(row) + g;
    };
#pragma GCC unroll 8
    for (int c = 0; c < kN; c += 2) {
      // The last of an odd number is its own partner, which is as fast as S::dot.
      const ActivationGroup* a = group(c);
      const ActivationGroup* b = c + 1 < kN ? group(c + 1) : a;
#pragma GCC unroll 2
      for (int part = 0; part < kShape::kParts; ++part) {
        const int first = part * kOfPart;
        typename S::Ints dots[2];
        S::template dot_pair<kOfPart>(
            {kShape::kMinimum ? 0 : a->offset[part], kShape::kMinimum ? 0 : b->offset[part]},
            v + first, {a->value + 4 * first, b->value + 4 * first}, dots);
        sum[c] = add_scaled<S, kShape>(*chunk.weights, g, part, *a, dots[0], sum[c]);
        if (c + 1 < kN) {
          sum[c + 1] = add_scaled<S, kShape>(*chunk.weights, g, part, *b, dots[1], sum[c + 1]);
        }
      }
    }
  }
  for (int c = 0; c < kN; ++c) S::store_floats(sums + c * S::kRows, sum[c]);
}

// multiply_tile in the way that suits `S` and what is fetched ahead.
template <class S, class Reader, class kShape, int kN>
void multiply_tile_of(const Chunk<S>& chunk, float* sums) {
  if constexpr (kVectorByVector<S, kShape::kValues>) {
    using enum Fetching;
    if (chunk.ahead.spread && chunk.later_bytes == 0) {
      return multiply_tile_by_vectors<S, Reader, kShape, kN, kSpread>(chunk, sums);
    }
    if (chunk.ahead.spread) {
      return multiply_tile_by_vectors<S, Reader, kShape, kN, kPartSpread>(chunk, sums);
    }
  }
  if constexpr (kVectorByVector<S, kShape::kValues> && kN > 1) {
    multiply_tile_by_vectors<S, Reader, kShape, kN, Fetching::kAtOnce>(chunk, sums);
  } else {
    multiply_tile<S, Reader, kShape, kN>(chunk, sums);
  }
}

// multiply_tile for `n` rows, 1 <= n <= S::kTile.
template <class S, class Reader, class kShape>
void multiply_rows(const Chunk<S>& chunk, int n, float* sums) {
  [&]<std::size_t... kI>(std::index_sequence<kI...>) {
    const auto one = [&]<int kN>() {
      if constexpr (Reader::kPairs) {
        if (n == kN) multiply_tile_in_pairs<S, kShape, kN>(chunk, sums);
      } else if (n == kN) {
        multiply_tile_of<S, Reader, kShape, kN>(chunk, sums);
      }
    };
    (one.template operator()<static_cast<int>(kI) + 1>(), ...);
  }
  (std::make_index_sequence<S::kTile>());
}

// The first of a tile's rows. Where rows are taken in pairs, no tile but the last has half a pair.
template <class S>
int tile_begin(int tile, int n, int n_tiles) {
  if constexpr (!kTakesPairs<S>) return tile * n / n_tiles;
  const int begin = tile * ((n + 1) / 2) / n_tiles * 2;
  return begin < n ? begin : n;
}

// InstructionSet::multiply for the quantised types.
template <class S, WeightType kType, class kShape>
void multiply_strip(const std::uint8_t* strip, std::int64_t n_columns, const void* activations,
                    std::size_t stride, int n, float* out) {
  using Header = HeaderReader<S, kType>;
  using Packed = ValueReader<S, kType>;
  for (int i = 0; i < n * S::kRows; ++i) out[i] = 0.0F;
  // Tiles of nearly the same size: 9 rows are 3 times 3, not 4, 4 and 1.
  const int n_tiles = (n + S::kTile - 1) / S::kTile;
  // Where there is little to unpack, it costs less than the way through memory.
  constexpr bool kAsPacked =
      !kTakesPairs<S> &&
      (Packed::kBits == 8 || (kVectorByVector<S, kShape::kValues> && Packed::kHigh == 0));
  const bool in_memory = S::kUnpacksOnce && !kAsPacked && n_tiles > 1;
  const Ahead ahead = kernels::ahead<S>(n, Packed::kBits);
  // Of values that were unpacked beforehand nothing is read from memory while they are multiplied.
  const bool by_all_tiles = in_memory || (ahead.spread && n_tiles > 1);
  const int later_bytes = by_all_tiles ? (Packed::kGroupBytes / n_tiles + 63) / 64 * 64 : 0;
  Unpacked<S> weights;
  const auto n_groups = static_cast<int>(n_columns / kGroup);
  for (int first = 0; first < n_groups; first += kChunkGroups) {
    const int count = n_groups - first < kChunkGroups ? n_groups - first : kChunkGroups;
    for (int g = 0; g < count; g += Header::kBlockGroups) {
      const std::uint8_t* header = strip + g / Header::kBlockGroups * Header::kBytes;
      fetch<Header::kBytes>(header, ahead);
      Header::read(header, g, &weights);
    }
    const std::uint8_t* values = strip + Header::chunk_bytes(count);
    if (in_memory) {
      for (int g = 0; g < count; ++g) {
        Packed::store(values + g * Packed::kGroupBytes, weights.values[g][0]);
      }
    }
    for (int tile = 0; tile < n_tiles; ++tile) {
      const int begin = tile_begin<S>(tile, n, n_tiles);
      const int size = tile_begin<S>(tile + 1, n, n_tiles) - begin;
      const auto* rows = static_cast<const std::uint8_t*>(activations) +
                         static_cast<std::size_t>(begin) * stride +
                         static_cast<std::size_t>(first) * sizeof(ActivationGroup);
      const Chunk<S> chunk{.weights = &weights,
                           .values = in_memory ? weights.values[0][0] : values,
                           .n_groups = count,
                           .activations = rows,
                           .stride = stride,
                           .ahead = tile == 0 || ahead.spread ? ahead : Ahead{.bytes = 0},
                           .later = values + ahead.bytes + tile * count * later_bytes,
                           .later_bytes = later_bytes};
      float* sums = out + begin * S::kRows;
      if constexpr (S::kUnpacksOnce) {
        if (in_memory) {
          multiply_rows<S, UnpackedReader<S>, kShape>(chunk, size, sums);
          continue;
        }
      }
      multiply_rows<S, Packed, kShape>(chunk, size, sums);
    }
    strip = values + count * Packed::kGroupBytes;
  }
}

}  // namespace outrider::kernels
