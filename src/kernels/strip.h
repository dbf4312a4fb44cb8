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
//   halves, unsigned_bytes, signed_bytes, exponents   R header fields as floats
//   kTile, kUnpacksOnce            rows of a tile; whether several tiles unpack once, to memory
//   largest(x, y)                  x > y ? x : y
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
#include "kernels/instruction_set.h"
#include "kernels/weight_type.h"

namespace outrider::kernels {

inline constexpr int kVectors = 8;      // of an unpacked group
inline constexpr int kChunkGroups = 8;  // groups unpacked at a time

// Whether the rows of activations are taken two at a time.
template <class S>
inline constexpr bool kTakesPairs = requires(typename S::Bytes* v) {
  S::template pair_columns<kVectors>(v);
};

// How much ahead of what is read packed weights are fetched, for `n` rows of activations. With few
// rows the processor's own fetching keeps up with the memory, if only the lines of a group are
// asked for all at once. With more rows, computing holds it up: then what comes later is asked for,
// into the second-level cache. Measured on a Zen 4 (Q4_0, one thread, 100 MB, which it reads in 3.2
// ms), ms for 1, 2, 3, 4, 8 rows: left to the processor 3.5, 4.7, 7.1; 0
// ahead 3.2, 3.2, 3.7, 5.3, 10.3; 6,912 ahead 4.3, 3.6, 3.7, 4.8, 9.1.
[[gnu::always_inline]] inline int bytes_ahead(int n) { return n > 2 ? 6912 : 0; }

// Fetches what comes `ahead` bytes after the `kBytes` at `at`. A strip's bytes are one stream, and
// the next strip's follow.
template <int kBytes>
[[gnu::always_inline]] inline void fetch(const std::uint8_t* at, int ahead) {
  for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(at + ahead + i, 0, 2);
}

// Up to 256 columns of a strip, unpacked.
template <class S>
struct Unpacked {
  alignas(64) std::uint8_t values[kChunkGroups][kVectors][4 * S::kRows];
  alignas(64) float scale[kChunkGroups][2][S::kRows];    // of a group, or of its two halves
  alignas(64) float minimum[kChunkGroups][2][S::kRows];  // as it is added: negative for K types
};

// The values of one group, from planes (kernels/packed.h) to a byte each.
template <class S, WeightType kType>
struct ValueReader {
  static constexpr int kBits =
      kType == WeightType::kQ80                                                             ? 8
      : kType == WeightType::kQ6K                                                           ? 6
      : kType == WeightType::kQ50 || kType == WeightType::kQ51 || kType == WeightType::kQ5K ? 5
      : kType == WeightType::kQ3K                                                           ? 3
      : kType == WeightType::kQ2K                                                           ? 2
                                                                                            : 4;
  static constexpr int kLow = kBits >= 4 ? 4 : 2;  // bits of the first plane
  static constexpr int kHigh = kBits - kLow;       // of the second
  static constexpr int kVectorBytes = 4 * S::kRows;
  static constexpr int kGroupBytes = kBits * kVectorBytes;
  static constexpr bool kPairs = false;
  static constexpr bool kFetches = true;  // what is read comes from memory, and only once

  // To memory, [kVectors, 4 * R]; the columns in pairs for an `S` that takes pairs.
  static void store(const std::uint8_t* in, std::uint8_t* out) {
    if constexpr (kTakesPairs<S>) {
      typename S::Bytes v[kVectors];
      read(in, v);
      S::template pair_columns<kVectors>(v);
      for (int j = 0; j < kVectors; ++j) S::store(out + j * kVectorBytes, v[j]);
      return;
    }
    [&]<std::size_t... kJ>(std::index_sequence<kJ...>) {
      (S::store(out + kJ * kVectorBytes, vector<kJ>(in)), ...);
    }
    (std::make_index_sequence<kVectors>());
  }
  // To registers.
  static void read(const std::uint8_t* in, typename S::Bytes* v) {
    [&]<std::size_t... kJ>(std::index_sequence<kJ...>) { ((v[kJ] = vector<kJ>(in)), ...); }
    (std::make_index_sequence<kVectors>());
  }

 private:
  template <int kJ>
  static typename S::Bytes vector(const std::uint8_t* in) {
    if constexpr (kBits == 8) return S::load(in + kJ * kVectorBytes);
    typename S::Bytes v = plane<kJ, kLow, 0>(in);
    if constexpr (kHigh > 0) {
      v = S::either(v, plane<kJ, kHigh, kLow>(in + kLow * kVectorBytes));
    }
    if constexpr (kType == WeightType::kIq4Nl || kType == WeightType::kIq4Xs) {
      v = S::lookup(S::iq4_table(), v);
    }
    if constexpr (kType == WeightType::kMxfp4) v = S::lookup(S::mxfp4_table(), v);
    return v;
  }

  template <int kJ, int kWidth, int kTo>
  static typename S::Bytes plane(const std::uint8_t* in) {
    const typename S::Bytes v = S::load(in + kJ * kWidth / 8 * kVectorBytes);
    return S::template move_bits<kJ * kWidth % 8, kTo, kWidth>(v);
  }
};

// The scales and minimums of the groups of one block.
template <class S, WeightType kType>
struct HeaderReader {
  using Floats = typename S::Floats;
  static constexpr int kRows = S::kRows;
  static constexpr bool kSuper = kType == WeightType::kQ4K || kType == WeightType::kQ5K ||
                                 kType == WeightType::kQ6K || kType == WeightType::kQ3K ||
                                 kType == WeightType::kQ2K || kType == WeightType::kIq4Xs;
  static constexpr int kBlockGroups = kSuper ? 8 : 1;
  static constexpr int kBytes =
      kRows * (kType == WeightType::kQ4K || kType == WeightType::kQ5K || kType == WeightType::kQ2K
                   ? 20
               : kType == WeightType::kQ6K                              ? 18
               : kType == WeightType::kQ3K                              ? 14
               : kType == WeightType::kIq4Xs                            ? 10
               : kType == WeightType::kQ41 || kType == WeightType::kQ51 ? 4
               : kType == WeightType::kMxfp4                            ? 1
                                                                        : 2);

  // Of the headers of a chunk of `n_groups`.
  static int chunk_bytes(int n_groups) {
    constexpr int kAlignment = 2 * kRows;
    return (n_groups / kBlockGroups * kBytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  static void read(const std::uint8_t* in, int group, Unpacked<S>* out) {
    auto* scale = out->scale + group;
    auto* minimum = out->minimum + group;
    if constexpr (kType == WeightType::kMxfp4) {
      S::store_floats(scale[0][0], S::exponents(in));
      return;
    } else {
      const Floats d = S::halves(in);
      in += 2 * kRows;
      if constexpr (!kSuper) {
        S::store_floats(scale[0][0], d);
        if constexpr (kBytes == 4 * kRows) {
          S::store_floats(minimum[0][0], S::halves(in));  // the file's are added
        }
      } else {
        read_super(d, in, scale, minimum);
      }
    }
  }

 private:
  static void read_super(Floats d, const std::uint8_t* in, float (*scale)[2][kRows],
                         float (*minimum)[2][kRows]) {
    if constexpr (kType == WeightType::kQ4K || kType == WeightType::kQ5K) {
      const Floats m = S::negative(S::halves(in));
      in += 2 * kRows;
      for (int g = 0; g < 8; ++g) {
        S::store_floats(scale[g][0], S::multiply(d, S::unsigned_bytes(in + g * kRows)));
        S::store_floats(minimum[g][0], S::multiply(m, S::unsigned_bytes(in + (8 + g) * kRows)));
      }
    } else if constexpr (kType == WeightType::kIq4Xs) {
      for (int g = 0; g < 8; ++g) {
        S::store_floats(scale[g][0], S::multiply(d, S::signed_bytes(in + g * kRows)));
      }
    } else if constexpr (kType == WeightType::kQ6K) {
      for (int i = 0; i < 16; ++i) {
        S::store_floats(scale[i / 2][i % 2], S::multiply(d, S::signed_bytes(in + i * kRows)));
      }
    } else if constexpr (kType == WeightType::kQ3K) {
      read_six_bits(d, in, scale);
    } else {
      const Floats m = S::negative(S::halves(in));
      in += 2 * kRows;
      alignas(64) std::uint8_t part[kRows];
      for (int i = 0; i < 16; ++i) {
        const std::uint8_t* both = in + i * kRows;
        for (int r = 0; r < kRows; ++r) part[r] = both[r] & 15U;
        S::store_floats(scale[i / 2][i % 2], S::multiply(d, S::unsigned_bytes(part)));
        for (int r = 0; r < kRows; ++r) part[r] = both[r] >> 4;
        S::store_floats(minimum[i / 2][i % 2], S::multiply(m, S::unsigned_bytes(part)));
      }
    }
  }

  // Q3_K: kernels/block.h says where the bits lie.
  static void read_six_bits(Floats d, const std::uint8_t* in, float (*scale)[2][kRows]) {
    alignas(64) std::uint8_t six[kRows];
    for (int i = 0; i < 16; ++i) {
      const std::uint8_t* low = in + i % 8 * kRows;
      const std::uint8_t* high = in + (8 + i % 4) * kRows;
      const int low_shift = i < 8 ? 0 : 4;
      const int high_shift = i / 4 * 2;
      for (int r = 0; r < kRows; ++r) {
        const int code = ((low[r] >> low_shift) & 15) | ((high[r] >> high_shift) & 3) << 4;
        six[r] = static_cast<std::uint8_t>(code - 32);
      }
      S::store_floats(scale[i / 2][i % 2], S::multiply(d, S::signed_bytes(six)));
    }
  }
};

// The values of a group that ValueReader::store has unpacked.
template <class S>
struct UnpackedReader {
  static constexpr int kGroupBytes = kVectors * 4 * S::kRows;
  static constexpr bool kPairs = kTakesPairs<S>;
  static constexpr bool kFetches = false;
  static void read(const std::uint8_t* in, typename S::Bytes* v) {
    for (int j = 0; j < kVectors; ++j) v[j] = S::load(in + j * 4 * S::kRows);
  }
};

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
  int ahead;                        // how much ahead packed values are fetched
};

// Adds the products of the chunk and `kN` rows of activations to `sums`, [kN, R].
template <class S, class Reader, class kShape, int kN>
void multiply_tile(const Chunk<S>& chunk, float* sums) {
  using Floats = typename S::Floats;
  constexpr int kOfPart = kVectors / kShape::kParts;
  Floats sum[kN];
  for (int c = 0; c < kN; ++c) sum[c] = S::load_floats(sums + c * S::kRows);
  for (int g = 0; g < chunk.n_groups; ++g) {
    const std::uint8_t* group = chunk.values + g * Reader::kGroupBytes;
    if constexpr (Reader::kFetches) fetch<Reader::kGroupBytes>(group, chunk.ahead);
    typename S::Bytes v[kVectors];
    Reader::read(group, v);
#pragma GCC unroll 8
    for (int c = 0; c < kN; ++c) {
      const std::uint8_t* row = chunk.activations + static_cast<std::size_t>(c) * chunk.stride;
      const auto* a = reinterpret_cast<const ActivationGroup*>(row) + g;
      const Floats a_scale = S::set_float(a->scale);
#pragma GCC unroll 2
      for (int part = 0; part < kShape::kParts; ++part) {
        const auto start = S::set_int(kShape::kMinimum ? 0 : a->offset[part]);
        const auto dot = S::template dot<kShape::kValues, kOfPart>(start, v + part * kOfPart,
                                                                   a->value + part * kOfPart * 4);
        const Floats scale = S::multiply(S::load_floats(chunk.weights->scale[g][part]), a_scale);
        sum[c] = S::fma(S::to_float(dot), scale, sum[c]);
        if constexpr (kShape::kMinimum) {
          const Floats total = S::set_float_bits(a->offset[part]);
          sum[c] = S::fma(S::load_floats(chunk.weights->minimum[g][part]), total, sum[c]);
        }
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
    UnpackedReader<S>::read(chunk.values + g * UnpackedReader<S>::kGroupBytes, v);
    const auto group = [&](int c) {
      const std::uint8_t* row = chunk.activations + static_cast<std::size_t>(c) * chunk.stride;
      return reinterpret_cast<const ActivationGroup*>(row) + g;
    };
    const auto add = [&](const ActivationGroup* a, int part, typename S::Ints dot, Floats* to) {
      const Floats scale =
          S::multiply(S::load_floats(chunk.weights->scale[g][part]), S::set_float(a->scale));
      *to = S::fma(S::to_float(dot), scale, *to);
      if constexpr (kShape::kMinimum) {
        const Floats total = S::set_float_bits(a->offset[part]);
        *to = S::fma(S::load_floats(chunk.weights->minimum[g][part]), total, *to);
      }
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
        add(a, part, dots[0], &sum[c]);
        if (c + 1 < kN) add(b, part, dots[1], &sum[c + 1]);
      }
    }
  }
  for (int c = 0; c < kN; ++c) S::store_floats(sums + c * S::kRows, sum[c]);
}

// multiply_tile for `n` rows, 1 <= n <= S::kTile.
template <class S, class Reader, class kShape>
void multiply_rows(const Chunk<S>& chunk, int n, float* sums) {
  [&]<std::size_t... kI>(std::index_sequence<kI...>) {
    const auto one = [&]<int kN>() {
      if constexpr (Reader::kPairs) {
        if (n == kN) multiply_tile_in_pairs<S, kShape, kN>(chunk, sums);
      } else {
        if (n == kN) multiply_tile<S, Reader, kShape, kN>(chunk, sums);
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
  constexpr bool kAsPacked = Packed::kBits == 8 && !kTakesPairs<S>;  // nothing to unpack
  const bool in_memory = S::kUnpacksOnce && !kAsPacked && n_tiles > 1;
  const int ahead = bytes_ahead(n);
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
        const std::uint8_t* group = values + g * Packed::kGroupBytes;
        fetch<Packed::kGroupBytes>(group, ahead);
        Packed::store(group, weights.values[g][0]);
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
                           .ahead = tile == 0 ? ahead : 0};
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
