// How a group of packed weights (kernels/packed.h) is read: values, scales and minimums.
//
// Part of strip.h, which says what `S` is and what may be called here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/fetch_ahead.h"
#include "kernels/weight_type.h"

namespace outrider::kernels {

inline constexpr int kVectors = 8;      // of an unpacked group
inline constexpr int kChunkGroups = 8;  // groups unpacked at a time

// Whether the rows of activations are taken two at a time.
template <class S>
inline constexpr bool kTakesPairs = requires(typename S::Bytes* v) {
  S::template pair_columns<kVectors>(v);
};

// Whether each vector of weights meets all rows of a tile before the next one is read: where
// registers are too few to hold a group of weights.
template <class S, Values kValues>
inline constexpr bool kVectorByVector = requires {
  typename S::template Dots<kValues, 1>;
};

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

  // One of them.
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

 private:
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
    // Each round's shifts are constants, or GCC takes the rows one by one.
    [&]<std::size_t... kI>(std::index_sequence<kI...>) {
      const auto one = [&]<int kAt>() {
        constexpr int kLowShift = kAt < 8 ? 0 : 4;
        constexpr int kHighShift = kAt / 4 * 2;
        const std::uint8_t* low = in + kAt % 8 * kRows;
        const std::uint8_t* high = in + (8 + kAt % 4) * kRows;
        alignas(64) std::uint8_t six[kRows];
        for (int r = 0; r < kRows; ++r) {
          const int code = ((low[r] >> kLowShift) & 15) | ((high[r] >> kHighShift) & 3) << 4;
          six[r] = static_cast<std::uint8_t>(code - 32);
        }
        S::store_floats(scale[kAt / 2][kAt % 2], S::multiply(d, S::signed_bytes(six)));
      };
      (one.template operator()<static_cast<int>(kI)>(), ...);
    }
    (std::make_index_sequence<16>());
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
  template <int kJ>
  static typename S::Bytes vector(const std::uint8_t* in) {
    return S::load(in + kJ * 4 * S::kRows);
  }
};

}  // namespace outrider::kernels
