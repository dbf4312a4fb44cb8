// AVX2 for kernels/strip.h: 16 rows a strip, two vectors of 8, so that each load of four
// activations serves two products. Two products are summed in 16 bits, which the ranges of the
// values allow for some vectors in a row; with AVX-VNNI four products and their sum are one
// instruction.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/fetch_ahead.h"
#include "kernels/weight_type.h"

namespace outrider::kernels {

struct Avx2 {
  struct Bytes {
    __m256i a, b;
  };
  using Ints = Bytes;
  struct Floats {
    __m256 a, b;
  };
  static constexpr int kRows = 16;
  static constexpr int kTile = 4;
  static constexpr int kFloatTile = 3;  // 12 sums, which leave registers for a column's weights
  static constexpr bool kUnpacksOnce = true;

  static Ahead ahead(int n, int /*bits*/) {
    if (__builtin_cpu_is("intel")) return {.spread = true};
    return {.bytes = n > 2 ? 6912 : 2304};
  }

  static Bytes load(const std::uint8_t* at) { return {load_32(at), load_32(at + 32)}; }
  static void store(std::uint8_t* at, Bytes v) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(at), v.a);
    _mm256_store_si256(reinterpret_cast<__m256i*>(at + 32), v.b);
  }
  static Floats load_floats(const float* at) {
    return {_mm256_loadu_ps(at), _mm256_loadu_ps(at + 8)};
  }
  static void store_floats(float* at, Floats v) {
    _mm256_storeu_ps(at, v.a);
    _mm256_storeu_ps(at + 8, v.b);
  }
  static Ints set_int(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  static Floats set_float(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Floats set_float_bits(std::int32_t x) { return set_float(__builtin_bit_cast(float, x)); }

  static Bytes either(Bytes x, Bytes y) {
    return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
  }
  template <int kFrom, int kTo, int kWidth>
  static Bytes move_bits(Bytes v) {
    return {move_bits<kFrom, kTo, kWidth>(v.a), move_bits<kFrom, kTo, kWidth>(v.b)};
  }
  static Bytes lookup(__m256i table, Bytes v) {
    return {_mm256_shuffle_epi8(table, v.a), _mm256_shuffle_epi8(table, v.b)};
  }
  static __m256i table(const std::int8_t* values, char flip) {
    const __m128i t = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
    return _mm256_broadcastsi128_si256(_mm_xor_si128(t, _mm_set1_epi8(flip)));
  }
  static __m256i mxfp4_table() { return table(kMxfp4ValuesPlus12, 0); }

  static Floats halves(const std::uint8_t* at) {
    return {_mm256_cvtph_ps(load_16(at)), _mm256_cvtph_ps(load_16(at + 16))};
  }
  static Floats bfloats(const std::uint8_t* at) {
    const auto half = [](const std::uint8_t* from) {
      return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_16(from)), 16));
    };
    return {half(at), half(at + 16)};
  }
  static Floats unsigned_bytes(const std::uint8_t* at) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_8(at))),
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_8(at + 8)))};
  }
  static Floats signed_bytes(const std::uint8_t* at) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_8(at))),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_8(at + 8)))};
  }
  // 2^(x - 128): a float's exponent from 2 on, below that subnormal.
  static Floats exponents(const std::uint8_t* at) {
    const auto half = [](const std::uint8_t* from) {
      const __m256i x = _mm256_cvtepu8_epi32(load_8(from));
      const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(x, _mm256_set1_epi32(1)), 23);
      const __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), x);
      const __m256i is_tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), x);
      return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, tiny, is_tiny));
    };
    return {half(at), half(at + 8)};
  }

  static Floats multiply(Floats x, Floats y) {
    return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
  }
  static Floats add(Floats x, Floats y) {
    return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
  }
  static Floats fma(Floats x, Floats y, Floats z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
  }
  // x > y ? x : y: the second where one is a NaN.
  static Floats largest(Floats x, Floats y) {
    return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
  }
  static Floats power_of_two(Floats x) { return {power_of_two(x.a), power_of_two(x.b)}; }
  // GCC puts off additions to where their sum is used, with all that is to be added kept in memory.
  static void stay_in_registers(Ints& v) { asm("" : "+x"(v.a), "+x"(v.b)); }
  static void stay_in_registers(__m256i& v) { asm("" : "+x"(v)); }
  static Ints plus(Ints x, Ints y) {
    return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
  }
  static Floats negative(Floats x) { return multiply(x, set_float(-1.0F)); }
  static Floats to_float(Ints v) { return {_mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b)}; }

  // First four by four within the halves of a register, then the halves among each other.
  template <int kHalf, class Read>
  [[gnu::always_inline]] static void transpose(const Read& read, float* out, std::size_t stride) {
    const auto row = [&](int i) { return kHalf == 0 ? read(i).a : read(i).b; };
    __m256 lanes[4][2];  // [i][q]: in its half l, the columns 4 l + i of the rows 4 q to 4 q + 3
#pragma GCC unroll 2
    for (int q = 0; q < 2; ++q) {
      __m256d low[2];  // of pairs of rows
      __m256d high[2];
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const __m256 x = row(4 * q + 2 * i);
        const __m256 y = row(4 * q + 2 * i + 1);
        low[i] = _mm256_castps_pd(_mm256_unpacklo_ps(x, y));
        high[i] = _mm256_castps_pd(_mm256_unpackhi_ps(x, y));
      }
      lanes[0][q] = _mm256_castpd_ps(_mm256_unpacklo_pd(low[0], low[1]));
      lanes[1][q] = _mm256_castpd_ps(_mm256_unpackhi_pd(low[0], low[1]));
      lanes[2][q] = _mm256_castpd_ps(_mm256_unpacklo_pd(high[0], high[1]));
      lanes[3][q] = _mm256_castpd_ps(_mm256_unpackhi_pd(high[0], high[1]));
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      _mm256_storeu_ps(out + i * stride, _mm256_permute2f128_ps(lanes[i][0], lanes[i][1], 0x20));
      _mm256_storeu_ps(out + (4 + i) * stride,
                       _mm256_permute2f128_ps(lanes[i][0], lanes[i][1], 0x31));
    }
  }

  // For kernels/quantise.h.
  static std::int32_t largest_magnitude(const float* x) {
    const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
    __m256i most = _mm256_setzero_si256();
    for (int i = 0; i < 32; i += 8) {
      const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
      most = _mm256_max_epi32(most, _mm256_and_si256(bits, mask));
    }
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    return _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xB1)));
  }
  static void round_to_bytes(const float* x, float factor, std::int8_t* out, std::int32_t* sums) {
    const __m256 factors = _mm256_set1_ps(factor);
    for (int half = 0; half < 2; ++half, x += 16, out += 16) {
      const __m256i low = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), factors));
      const __m256i high = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), factors));
      // Packing takes halves of 128 bits: 0-3, 8-11 of both, then 4-7, 12-15.
      const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xD8);
      _mm_storeu_si128(
          reinterpret_cast<__m128i*>(out),
          _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
      const __m256i sum = _mm256_add_epi32(low, high);
      __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
      four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
      sums[half] = _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1)));
    }
  }

  // Four activations in each lane.
  static __m256i four(const std::int8_t* q) {
    std::int32_t bits = 0;
    __builtin_memcpy(&bits, q, sizeof bits);
    return _mm256_set1_epi32(bits);
  }

 private:
  static __m256 power_of_two(__m256 x) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(x), 23),
                                                _mm256_set1_epi32(0x3F800000)));
  }
  template <int kFrom, int kTo, int kWidth>
  static __m256i move_bits(__m256i v) {
    // Shifts of 16 bits: what comes from the other byte lies outside the mask.
    if constexpr (kFrom > kTo) v = _mm256_srli_epi16(v, kFrom - kTo);
    if constexpr (kFrom < kTo) v = _mm256_slli_epi16(v, kTo - kFrom);
    return _mm256_and_si256(v, _mm256_set1_epi8(static_cast<char>(((1 << kWidth) - 1) << kTo)));
  }
  static __m128i load_8(const std::uint8_t* at) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
  }
  static __m128i load_16(const std::uint8_t* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  }
  static __m256i load_32(const std::uint8_t* at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }
};

#if defined(__AVXVNNI__)
struct AvxVnni : Avx2 {
  static constexpr int kTile = 6;  // 12 sums: as many products as are under way at once, and more
  static constexpr std::uint8_t kFlip = 128;
  static __m256i iq4_table() { return table(kIq4Values, static_cast<char>(kFlip)); }

  template <Values kValues, int kVectors>
  static Ints dot(Ints sum, const Bytes* v, const std::int8_t* q) {
    for (int j = 0; j < kVectors; ++j) {
      const __m256i a = four(q + 4 * j);
      sum.a = _mm256_dpbusd_avx_epi32(sum.a, v[j].a, a);
      sum.b = _mm256_dpbusd_avx_epi32(sum.b, v[j].b, a);
    }
    return sum;
  }

  // Row by row each product would wait for the one before, and each vector be read for each row.
  template <Values kValues, int kN>
  class Dots {
   public:
    static constexpr int kPasses = 1;

    template <class Start>
    [[gnu::always_inline]] void begin(Start start) {
#pragma GCC unroll 8
      for (int c = 0; c < kN; ++c) sums_[c] = set_int(start(c));
    }
    template <int kJ, int kPass, class Row>
    [[gnu::always_inline]] void add(Bytes v, Row row) {
      stay_in_registers(v);  // or GCC reads them from memory for each row
#pragma GCC unroll 8
      for (int c = 0; c < kN; ++c) {
        const __m256i a = four(row(c));
        sums_[c].a = _mm256_dpbusd_avx_epi32(sums_[c].a, v.a, a);
        sums_[c].b = _mm256_dpbusd_avx_epi32(sums_[c].b, v.b, a);
        stay_in_registers(sums_[c]);
      }
    }
    template <class Start>
    [[gnu::always_inline]] Ints sum(int c, Start /*start*/) const {
      return sums_[c];
    }

   private:
    Ints sums_[kN];
  };
};
#else
struct Avx2Plain : Avx2 {
  static constexpr std::uint8_t kFlip = 0;
  static __m256i iq4_table() { return table(kIq4Values, 0); }

  template <Values kValues, int kVectors>
  static Ints dot(Ints sum, const Bytes* v, const std::int8_t* q) {
    constexpr int kSafe = sums_in_16_bits(kValues) < kVectors ? sums_in_16_bits(kValues) : kVectors;
    for (int j = 0; j < kVectors; j += kSafe) {
      __m256i a = four(q + 4 * j);
      Ints pairs = {products<kValues>(v[j].a, a), products<kValues>(v[j].b, a)};
      for (int i = j + 1; i < j + kSafe; ++i) {
        a = four(q + 4 * i);
        pairs.a = _mm256_add_epi16(pairs.a, products<kValues>(v[i].a, a));
        pairs.b = _mm256_add_epi16(pairs.b, products<kValues>(v[i].b, a));
        stay_in_registers(pairs);
      }
      sum = plus(sum, wide(pairs));
    }
    return sum;
  }

  // For values of which a whole group's products are summed in 16 bits, and those of which not even
  // two.
  template <Values kValues, int kN>
  class Dots {
   public:
    static constexpr int kPasses = 1;

    template <class Start>
    void begin(Start /*start*/) {}
    template <int kJ, int kPass, class Row>
    [[gnu::always_inline]] void add(Bytes v, Row row) {
#pragma GCC unroll 8
      for (int c = 0; c < kN; ++c) {
        const __m256i a = four(row(c));
        const Ints pairs = {products<kValues>(v.a, a), products<kValues>(v.b, a)};
        if constexpr (kWide) {
          sums_[c] = kJ == 0 ? wide(pairs) : plus(sums_[c], wide(pairs));
        } else {
          sums_[c] = kJ == 0 ? pairs
                             : Ints{_mm256_add_epi16(sums_[c].a, pairs.a),
                                    _mm256_add_epi16(sums_[c].b, pairs.b)};
        }
        stay_in_registers(sums_[c]);
      }
    }
    template <class Start>
    [[gnu::always_inline]] Ints sum(int c, Start start) const {
      return plus(kWide ? sums_[c] : wide(sums_[c]), set_int(start(c)));
    }

   private:
    static constexpr bool kWide = kValues == Values::kSigned8;  // sums_ have 32 bits, not 16
    Ints sums_[kN];
  };

  // For those of which some vectors' products are summed in 16 bits, and then in 32: both sums of
  // all 16 rows do not fit into the registers, so each pass has a half of the rows.
  template <Values kValues, int kN>
  requires(kValues == Values::kTo31 || kValues == Values::kTo63) class Dots<kValues, kN> {
   public:
    static constexpr int kPasses = 2;

    template <class Start>
    void begin(Start /*start*/) {}
    template <int kJ, int kPass, class Row>
    [[gnu::always_inline]] void add(Bytes v, Row row) {
      constexpr int kSafe = sums_in_16_bits(kValues);
#pragma GCC unroll 8
      for (int c = 0; c < kN; ++c) {
        const __m256i a = _mm256_maddubs_epi16(kPass == 0 ? v.a : v.b, four(row(c)));
        pairs_[c] = kJ % kSafe == 0 ? a : _mm256_add_epi16(pairs_[c], a);
        stay_in_registers(pairs_[c]);
        if constexpr (kJ % kSafe == kSafe - 1) {
          const __m256i sum = _mm256_madd_epi16(pairs_[c], _mm256_set1_epi16(1));
          sums_[kPass][c] = kJ < kSafe ? sum : _mm256_add_epi32(sums_[kPass][c], sum);
          stay_in_registers(sums_[kPass][c]);
        }
      }
    }
    template <class Start>
    [[gnu::always_inline]] Ints sum(int c, Start start) const {
      return plus({sums_[0][c], sums_[1][c]}, set_int(start(c)));
    }

   private:
    __m256i pairs_[kN];
    __m256i sums_[2][kN];
  };

 private:
  static Ints wide(Ints pairs) {
    const __m256i one = _mm256_set1_epi16(1);
    return {_mm256_madd_epi16(pairs.a, one), _mm256_madd_epi16(pairs.b, one)};
  }
  template <Values kValues>
  static __m256i products(__m256i v, __m256i a) {
    if constexpr (kValues != Values::kSigned8) return _mm256_maddubs_epi16(v, a);
    // |v| * (a with the sign of v)
    return _mm256_maddubs_epi16(_mm256_abs_epi8(v), _mm256_sign_epi8(a, v));
  }
};
#endif

}  // namespace outrider::kernels
