// AVX512 for kernels/strip.h: 32 rows a strip, two vectors of 16, so that each load of four
// activations serves two products. With VNNI four products and their sum are one instruction;
// without, two products are summed in 16 bits first, which the ranges of the values allow for some
// vectors in a row.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/fetch_ahead.h"
#include "kernels/weight_type.h"

namespace outrider::kernels {

struct Avx512 {
  struct Bytes {
    __m512i a, b;
  };
  using Ints = Bytes;
  struct Floats {
    __m512 a, b;
  };
  static constexpr int kRows = 32;
  static constexpr int kTile = 8;
  // Unpacking again for each tile of 8 is as fast with Q4_K to Q8_0, 10 % faster with Q4_0 (Zen 4).
  static constexpr bool kUnpacksOnce = false;

  // Zen 4 keeps up with its memory by itself while it computes little for what it reads, Zen 5 does
  // not.
  static Ahead ahead(int n, int bits) {
    if (__builtin_cpu_is("intel")) return {.spread = bits < 8 || n > kTile};
    if (__builtin_cpu_is("amdfam19h")) {
      const int by_itself = bits == 8 ? 4 : bits > 4 ? 1 : 2;
      return {.bytes = n > by_itself ? 6912 : 0};
    }
    // A block of kMaxTile rows may have others behind it, which read the same weights.
    return {.bytes = 6912, .into = n < kMaxTile ? Ahead::Into::kFirstAlone : Ahead::Into::kFirst};
  }

  static Bytes load(const std::uint8_t* at) {
    return {_mm512_loadu_si512(at), _mm512_loadu_si512(at + 64)};
  }
  static void store(std::uint8_t* at, Bytes v) {
    _mm512_store_si512(at, v.a);
    _mm512_store_si512(at + 64, v.b);
  }
  static Floats load_floats(const float* at) {
    return {_mm512_loadu_ps(at), _mm512_loadu_ps(at + 16)};
  }
  static void store_floats(float* at, Floats v) {
    _mm512_storeu_ps(at, v.a);
    _mm512_storeu_ps(at + 16, v.b);
  }
  static Ints set_int(std::int32_t x) { return {_mm512_set1_epi32(x), _mm512_set1_epi32(x)}; }
  static Floats set_float(float x) { return {_mm512_set1_ps(x), _mm512_set1_ps(x)}; }
  static Floats set_float_bits(std::int32_t x) { return set_float(__builtin_bit_cast(float, x)); }

  static Bytes either(Bytes x, Bytes y) {
    return {_mm512_or_si512(x.a, y.a), _mm512_or_si512(x.b, y.b)};
  }
  template <int kFrom, int kTo, int kWidth>
  static Bytes move_bits(Bytes v) {
    return {move_bits<kFrom, kTo, kWidth>(v.a), move_bits<kFrom, kTo, kWidth>(v.b)};
  }
  static Bytes lookup(__m512i table, Bytes v) {
    return {_mm512_shuffle_epi8(table, v.a), _mm512_shuffle_epi8(table, v.b)};
  }
  static __m512i table(const std::int8_t* values, char flip) {
    const __m128i t = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
    return _mm512_broadcast_i32x4(_mm_xor_si128(t, _mm_set1_epi8(flip)));
  }
  static __m512i mxfp4_table() { return table(kMxfp4ValuesPlus12, 0); }

  static Floats halves(const std::uint8_t* at) {
    return {_mm512_cvtph_ps(load_32(at)), _mm512_cvtph_ps(load_32(at + 32))};
  }
  static Floats bfloats(const std::uint8_t* at) {
    const auto half = [](const std::uint8_t* from) {
      return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_32(from)), 16));
    };
    return {half(at), half(at + 32)};
  }
  static Floats unsigned_bytes(const std::uint8_t* at) {
    return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_16(at))),
            _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_16(at + 16)))};
  }
  static Floats signed_bytes(const std::uint8_t* at) {
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_16(at))),
            _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_16(at + 16)))};
  }
  // 2^(x - 128): a float's exponent from 2 on, below that subnormal.
  static Floats exponents(const std::uint8_t* at) {
    const auto half = [](const std::uint8_t* from) {
      const __m512i x = _mm512_cvtepu8_epi32(load_16(from));
      const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(x, _mm512_set1_epi32(1)), 23);
      const __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), x);
      const __mmask16 is_tiny = _mm512_cmplt_epi32_mask(x, _mm512_set1_epi32(2));
      return _mm512_castsi512_ps(_mm512_mask_blend_epi32(is_tiny, normal, tiny));
    };
    return {half(at), half(at + 16)};
  }

  static Floats multiply(Floats x, Floats y) {
    return {_mm512_mul_ps(x.a, y.a), _mm512_mul_ps(x.b, y.b)};
  }
  static Floats add(Floats x, Floats y) {
    return {_mm512_add_ps(x.a, y.a), _mm512_add_ps(x.b, y.b)};
  }
  static Floats fma(Floats x, Floats y, Floats z) {
    return {_mm512_fmadd_ps(x.a, y.a, z.a), _mm512_fmadd_ps(x.b, y.b, z.b)};
  }
  // x > y ? x : y: the second where one is a NaN.
  static Floats largest(Floats x, Floats y) {
    return {_mm512_max_ps(x.a, y.a), _mm512_max_ps(x.b, y.b)};
  }
  static Floats power_of_two(Floats x) { return {power_of_two(x.a), power_of_two(x.b)}; }
  static Floats negative(Floats x) { return multiply(x, set_float(-1.0F)); }
  static Floats to_float(Ints v) { return {_mm512_cvtepi32_ps(v.a), _mm512_cvtepi32_ps(v.b)}; }

  // First four by four within the quarters of a register, then the quarters among each other.
  template <int kHalf, class Read>
  [[gnu::always_inline]] static void transpose(const Read& read, float* out, std::size_t stride) {
    const auto row = [&](int i) { return kHalf == 0 ? read(i).a : read(i).b; };
    __m512 lanes[4][4];  // [i][q]: in its quarter l, the columns 4 l + i of the rows 4 q to 4 q + 3
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      __m512d low[2];  // of pairs of rows
      __m512d high[2];
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const __m512 x = row(4 * q + 2 * i);
        const __m512 y = row(4 * q + 2 * i + 1);
        low[i] = _mm512_castps_pd(_mm512_unpacklo_ps(x, y));
        high[i] = _mm512_castps_pd(_mm512_unpackhi_ps(x, y));
      }
      lanes[0][q] = _mm512_castpd_ps(_mm512_unpacklo_pd(low[0], low[1]));
      lanes[1][q] = _mm512_castpd_ps(_mm512_unpackhi_pd(low[0], low[1]));
      lanes[2][q] = _mm512_castpd_ps(_mm512_unpacklo_pd(high[0], high[1]));
      lanes[3][q] = _mm512_castpd_ps(_mm512_unpackhi_pd(high[0], high[1]));
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      const __m512 even01 = _mm512_shuffle_f32x4(lanes[i][0], lanes[i][1], 0x88);
      const __m512 even23 = _mm512_shuffle_f32x4(lanes[i][2], lanes[i][3], 0x88);
      const __m512 odd01 = _mm512_shuffle_f32x4(lanes[i][0], lanes[i][1], 0xDD);
      const __m512 odd23 = _mm512_shuffle_f32x4(lanes[i][2], lanes[i][3], 0xDD);
      _mm512_storeu_ps(out + i * stride, _mm512_shuffle_f32x4(even01, even23, 0x88));
      _mm512_storeu_ps(out + (4 + i) * stride, _mm512_shuffle_f32x4(odd01, odd23, 0x88));
      _mm512_storeu_ps(out + (8 + i) * stride, _mm512_shuffle_f32x4(even01, even23, 0xDD));
      _mm512_storeu_ps(out + (12 + i) * stride, _mm512_shuffle_f32x4(odd01, odd23, 0xDD));
    }
  }

  // For kernels/quantise.h.
  static std::int32_t largest_magnitude(const float* x) {
    const __m512i mask = _mm512_set1_epi32(0x7FFFFFFF);
    return _mm512_reduce_max_epi32(
        _mm512_max_epi32(_mm512_and_si512(_mm512_loadu_si512(x), mask),
                         _mm512_and_si512(_mm512_loadu_si512(x + 16), mask)));
  }
  static void round_to_bytes(const float* x, float factor, std::int8_t* out, std::int32_t* sums) {
    for (int half = 0; half < 2; ++half) {
      const __m512i values =
          _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16 * half), _mm512_set1_ps(factor)));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16 * half), _mm512_cvtepi32_epi8(values));
      sums[half] = _mm512_reduce_add_epi32(values);
    }
  }

  // Four activations in each lane.
  static __m512i four(const std::int8_t* q) {
    std::int32_t bits = 0;
    __builtin_memcpy(&bits, q, sizeof bits);
    return _mm512_set1_epi32(bits);
  }

 private:
  static __m512 power_of_two(__m512 x) {
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(x), 23),
                                                _mm512_set1_epi32(0x3F800000)));
  }
  template <int kFrom, int kTo, int kWidth>
  static __m512i move_bits(__m512i v) {
    // Shifts of 16 bits: what comes from the other byte lies outside the mask.
    if constexpr (kFrom > kTo) v = _mm512_srli_epi16(v, kFrom - kTo);
    if constexpr (kFrom < kTo) v = _mm512_slli_epi16(v, kTo - kFrom);
    return _mm512_and_si512(v, _mm512_set1_epi8(static_cast<char>(((1 << kWidth) - 1) << kTo)));
  }
  static __m128i load_16(const std::uint8_t* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  }
  static __m256i load_32(const std::uint8_t* at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }
};

#if defined(__AVX512VNNI__)
struct Avx512Vnni : Avx512 {
  static constexpr std::uint8_t kFlip = 128;
  static __m512i iq4_table() { return table(kIq4Values, static_cast<char>(kFlip)); }

  template <Values kValues, int kVectors>
  static Ints dot(Ints sum, const Bytes* v, const std::int8_t* q) {
    for (int j = 0; j < kVectors; ++j) {
      const __m512i a = four(q + 4 * j);
      sum.a = _mm512_dpbusd_epi32(sum.a, v[j].a, a);
      sum.b = _mm512_dpbusd_epi32(sum.b, v[j].b, a);
    }
    return sum;
  }

  // A group's vectors and the sums of a tile would be all 32 registers: keeping vector after vector
  // only as long as it meets the rows is 5 to 10 % faster from four rows on (Zen 5).
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
      asm("" : "+v"(v.a), "+v"(v.b));
#pragma GCC unroll 8
      for (int c = 0; c < kN; ++c) {
        const __m512i a = four(row(c));
        sums_[c].a = _mm512_dpbusd_epi32(sums_[c].a, v.a, a);
        sums_[c].b = _mm512_dpbusd_epi32(sums_[c].b, v.b, a);
        asm("" : "+v"(sums_[c].a), "+v"(sums_[c].b));
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
struct Avx512Plain : Avx512 {
  static constexpr std::uint8_t kFlip = 0;
  static __m512i iq4_table() { return table(kIq4Values, 0); }

  template <Values kValues, int kVectors>
  static Ints dot(Ints sum, const Bytes* v, const std::int8_t* q) {
    constexpr int kSafe = sums_in_16_bits(kValues) < kVectors ? sums_in_16_bits(kValues) : kVectors;
    const __m512i one = _mm512_set1_epi16(1);
    for (int j = 0; j < kVectors; j += kSafe) {
      __m512i a = four(q + 4 * j);
      Ints pairs = {products<kValues>(v[j].a, a), products<kValues>(v[j].b, a)};
      for (int i = j + 1; i < j + kSafe; ++i) {
        a = four(q + 4 * i);
        pairs.a = _mm512_add_epi16(pairs.a, products<kValues>(v[i].a, a));
        pairs.b = _mm512_add_epi16(pairs.b, products<kValues>(v[i].b, a));
      }
      sum.a = _mm512_add_epi32(sum.a, _mm512_madd_epi16(pairs.a, one));
      sum.b = _mm512_add_epi32(sum.b, _mm512_madd_epi16(pairs.b, one));
    }
    return sum;
  }

 private:
  template <Values kValues>
  static __m512i products(__m512i v, __m512i a) {
    if constexpr (kValues != Values::kSigned8) return _mm512_maddubs_epi16(v, a);
    // |v| * (a with the sign of v)
    const __m512i signed_a =
        _mm512_mask_sub_epi8(a, _mm512_movepi8_mask(v), _mm512_setzero_si512(), a);
    return _mm512_maddubs_epi16(_mm512_abs_epi8(v), signed_a);
  }
};
#endif

}  // namespace outrider::kernels
