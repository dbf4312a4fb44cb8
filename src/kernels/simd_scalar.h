// Plain C++ for kernels/strip.h, 8 rows a strip: for processors that no other file knows.
#pragma once

#include <cstdint>

#include "kernels/weight_type.h"

namespace outrider::kernels {

struct Scalar {
  static constexpr int kRows = 8;
  static constexpr int kTile = 1;
  static constexpr bool kUnpacksOnce = true;
  static constexpr std::uint8_t kFlip = 0;
  template <class T, int kSize>
  struct Lanes {
    T lane[kSize];
  };
  using Bytes = Lanes<std::uint8_t, 4 * kRows>;
  using Ints = Lanes<std::int32_t, kRows>;
  using Floats = Lanes<float, kRows>;

  static Bytes load(const std::uint8_t* at) {
    Bytes v;
    __builtin_memcpy(&v, at, sizeof v);
    return v;
  }
  static void store(std::uint8_t* at, const Bytes& v) { __builtin_memcpy(at, &v, sizeof v); }
  static Floats load_floats(const float* at) {
    Floats v;
    __builtin_memcpy(&v, at, sizeof v);
    return v;
  }
  static void store_floats(float* at, const Floats& v) { __builtin_memcpy(at, &v, sizeof v); }
  static Ints set_int(std::int32_t x) {
    return each<Ints>([x](int) { return x; });
  }
  static Floats set_float(float x) {
    return each<Floats>([x](int) { return x; });
  }
  static Floats set_float_bits(std::int32_t x) { return set_float(__builtin_bit_cast(float, x)); }

  static Bytes either(const Bytes& x, const Bytes& y) {
    return each<Bytes>([&](int i) { return static_cast<std::uint8_t>(x.lane[i] | y.lane[i]); });
  }
  template <int kFrom, int kTo, int kWidth>
  static Bytes move_bits(const Bytes& v) {
    return each<Bytes>([&](int i) {
      return static_cast<std::uint8_t>(((v.lane[i] >> kFrom) & ((1 << kWidth) - 1)) << kTo);
    });
  }
  static Bytes lookup(const std::int8_t* table, const Bytes& v) {
    return each<Bytes>([&](int i) { return static_cast<std::uint8_t>(table[v.lane[i]]); });
  }
  static const std::int8_t* iq4_table() { return kIq4Values; }
  static const std::int8_t* mxfp4_table() { return kMxfp4ValuesPlus12; }

  static Floats halves(const std::uint8_t* at) {
    return each<Floats>([&](int r) { return half_to_float(sixteen(at, r)); });
  }
  static Floats bfloats(const std::uint8_t* at) {
    return each<Floats>([&](int r) {
      return __builtin_bit_cast(float, static_cast<std::uint32_t>(sixteen(at, r)) << 16);
    });
  }
  static Floats unsigned_bytes(const std::uint8_t* at) {
    return each<Floats>([&](int r) { return static_cast<float>(at[r]); });
  }
  static Floats signed_bytes(const std::uint8_t* at) {
    return each<Floats>([&](int r) { return static_cast<float>(static_cast<std::int8_t>(at[r])); });
  }
  static Floats exponents(const std::uint8_t* at) {
    return each<Floats>([&](int r) {
      const std::uint32_t x = at[r];
      return __builtin_bit_cast(float, x < 2 ? 0x00200000U << x : (x - 1) << 23);
    });
  }

  static Floats multiply(const Floats& x, const Floats& y) {
    return each<Floats>([&](int r) { return x.lane[r] * y.lane[r]; });
  }
  static Floats add(const Floats& x, const Floats& y) {
    return each<Floats>([&](int r) { return x.lane[r] + y.lane[r]; });
  }
  static Floats fma(const Floats& x, const Floats& y, const Floats& z) {
    return each<Floats>([&](int r) { return __builtin_fmaf(x.lane[r], y.lane[r], z.lane[r]); });
  }
  // x > y ? x : y: the second where one is a NaN.
  static Floats largest(const Floats& x, const Floats& y) {
    return each<Floats>([&](int r) { return x.lane[r] > y.lane[r] ? x.lane[r] : y.lane[r]; });
  }
  static Floats power_of_two(const Floats& x) {
    return each<Floats>([&](int r) {
      const auto bits = __builtin_bit_cast(std::uint32_t, x.lane[r]);
      return __builtin_bit_cast(float, (bits << 23) + 0x3F800000U);
    });
  }
  static Floats negative(const Floats& x) {
    return each<Floats>([&](int r) { return -x.lane[r]; });
  }
  static Floats to_float(const Ints& v) {
    return each<Floats>([&](int r) { return static_cast<float>(v.lane[r]); });
  }

  template <int kHalf, class Read>
  static void transpose(const Read& read, float* out, std::size_t stride) {
    for (int i = 0; i < kRows / 2; ++i) {
      const Floats row = read(i);
      for (int j = 0; j < kRows / 2; ++j) {
        out[static_cast<std::size_t>(j) * stride + static_cast<std::size_t>(i)] =
            row.lane[kHalf * kRows / 2 + j];
      }
    }
  }

  template <Values kValues, int kVectors>
  static Ints dot(Ints sum, const Bytes* v, const std::int8_t* q) {
    for (int j = 0; j < kVectors; ++j) {
      for (int r = 0; r < kRows; ++r) {
        for (int e = 0; e < 4; ++e) {
          const std::uint8_t byte = v[j].lane[4 * r + e];
          const int weight = kValues == Values::kSigned8 ? static_cast<std::int8_t>(byte) : byte;
          sum.lane[r] += weight * q[4 * j + e];
        }
      }
    }
    return sum;
  }

 private:
  template <class T, class Function>
  static T each(const Function& function) {
    T v;
    for (int i = 0; i < static_cast<int>(sizeof v.lane / sizeof v.lane[0]); ++i) {  // NOLINT
      v.lane[i] = function(i);
    }
    return v;
  }
  static std::uint16_t sixteen(const std::uint8_t* at, int r) {
    return static_cast<std::uint16_t>(at[2 * r] | at[2 * r + 1] << 8);
  }
};

}  // namespace outrider::kernels
