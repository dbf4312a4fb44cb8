// NEON for kernels/strip.h: 8 rows a strip, two vectors of 4. The 8 unpacked vectors of a group
// then take 16 registers, and the sums of four rows of activations, their activations and scales
// the other 16. One load brings 16 activations, of which sdot takes four by number.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/weight_type.h"

namespace outrider::kernels {

struct NeonDotprod {
  struct Bytes {
    uint8x16_t a, b;
  };
  struct Ints {
    int32x4_t a, b;
  };
  struct Floats {
    float32x4_t a, b;
  };
  static constexpr int kRows = 8;
  static constexpr int kTile = 4;
  static constexpr bool kUnpacksOnce = true;
  static constexpr std::uint8_t kFlip = 0;  // sdot wants signed values, and 0 to 63 are such too

  static Bytes load(const std::uint8_t* at) { return {vld1q_u8(at), vld1q_u8(at + 16)}; }
  static void store(std::uint8_t* at, Bytes v) {
    vst1q_u8(at, v.a);
    vst1q_u8(at + 16, v.b);
  }
  static Floats load_floats(const float* at) { return {vld1q_f32(at), vld1q_f32(at + 4)}; }
  static void store_floats(float* at, Floats v) {
    vst1q_f32(at, v.a);
    vst1q_f32(at + 4, v.b);
  }
  static Ints set_int(std::int32_t x) { return {vdupq_n_s32(x), vdupq_n_s32(x)}; }
  static Floats set_float(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
  static Floats set_float_bits(std::int32_t x) { return set_float(__builtin_bit_cast(float, x)); }

  static Bytes either(Bytes x, Bytes y) { return {vorrq_u8(x.a, y.a), vorrq_u8(x.b, y.b)}; }
  template <int kFrom, int kTo, int kWidth>
  static Bytes move_bits(Bytes v) {
    return {move_bits<kFrom, kTo, kWidth>(v.a), move_bits<kFrom, kTo, kWidth>(v.b)};
  }
  static Bytes lookup(uint8x16_t table, Bytes v) {
    return {vqtbl1q_u8(table, v.a), vqtbl1q_u8(table, v.b)};
  }
  static uint8x16_t iq4_table() { return vreinterpretq_u8_s8(vld1q_s8(kIq4Values)); }
  static uint8x16_t mxfp4_table() { return vreinterpretq_u8_s8(vld1q_s8(kMxfp4ValuesPlus12)); }

  static Floats halves(const std::uint8_t* at) {
    const float16x8_t x = vreinterpretq_f16_u8(vld1q_u8(at));
    return {vcvt_f32_f16(vget_low_f16(x)), vcvt_high_f32_f16(x)};
  }
  static Floats bfloats(const std::uint8_t* at) {
    const uint16x8_t x = vreinterpretq_u16_u8(vld1q_u8(at));
    return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(x), 16)),
            vreinterpretq_f32_u32(vshll_high_n_u16(x, 16))};
  }
  static Floats unsigned_bytes(const std::uint8_t* at) {
    const Words x = words(at);
    return {vcvtq_f32_u32(x.a), vcvtq_f32_u32(x.b)};
  }
  static Floats signed_bytes(const std::uint8_t* at) {
    const int16x8_t x = vmovl_s8(vreinterpret_s8_u8(vld1_u8(at)));
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(x))), vcvtq_f32_s32(vmovl_high_s16(x))};
  }
  // 2^(x - 128): a float's exponent from 2 on, below that subnormal.
  static Floats exponents(const std::uint8_t* at) {
    const auto half = [](uint32x4_t x) {
      const uint32x4_t normal = vshlq_n_u32(vsubq_u32(x, vdupq_n_u32(1)), 23);
      const uint32x4_t tiny = vshlq_u32(vdupq_n_u32(0x00200000), vreinterpretq_s32_u32(x));
      return vreinterpretq_f32_u32(vbslq_u32(vcltq_u32(x, vdupq_n_u32(2)), tiny, normal));
    };
    const Words x = words(at);
    return {half(x.a), half(x.b)};
  }

  static Floats multiply(Floats x, Floats y) { return {vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b)}; }
  static Floats add(Floats x, Floats y) { return {vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b)}; }
  static Floats fma(Floats x, Floats y, Floats z) {
    return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b)};
  }
  // x > y ? x : y: the second where one is a NaN.
  static Floats largest(Floats x, Floats y) {
    return {vbslq_f32(vcgtq_f32(x.a, y.a), x.a, y.a), vbslq_f32(vcgtq_f32(x.b, y.b), x.b, y.b)};
  }
  static Floats power_of_two(Floats x) { return {power_of_two(x.a), power_of_two(x.b)}; }
  static Floats negative(Floats x) { return {vnegq_f32(x.a), vnegq_f32(x.b)}; }
  static Floats to_float(Ints v) { return {vcvtq_f32_s32(v.a), vcvtq_f32_s32(v.b)}; }

  template <int kHalf, class Read>
  [[gnu::always_inline]] static void transpose(const Read& read, float* out, std::size_t stride) {
    const auto row = [&](int i) { return kHalf == 0 ? read(i).a : read(i).b; };
    const float32x4x2_t low = vzipq_f32(row(0), row(2));   // columns 0 and 1 of rows 0 and 2
    const float32x4x2_t high = vzipq_f32(row(1), row(3));  // of rows 1 and 3
    const float32x4x2_t columns01 = vzipq_f32(low.val[0], high.val[0]);
    const float32x4x2_t columns23 = vzipq_f32(low.val[1], high.val[1]);
    vst1q_f32(out, columns01.val[0]);
    vst1q_f32(out + stride, columns01.val[1]);
    vst1q_f32(out + 2 * stride, columns23.val[0]);
    vst1q_f32(out + 3 * stride, columns23.val[1]);
  }

  // GCC would call it, and pass the vectors through memory.
  template <Values kValues, int kVectors>
  [[gnu::always_inline]] static Ints dot(Ints sum, const Bytes* v, const std::int8_t* q) {
    static_assert(kVectors % 4 == 0);
    for (int j = 0; j < kVectors; j += 4) {
      const int8x16_t a = vld1q_s8(q + 4 * j);
      add_four<0>(&sum, v[j], a);
      add_four<1>(&sum, v[j + 1], a);
      add_four<2>(&sum, v[j + 2], a);
      add_four<3>(&sum, v[j + 3], a);
    }
    return sum;
  }

 private:
  static float32x4_t power_of_two(float32x4_t x) {
    return vreinterpretq_f32_s32(
        vaddq_s32(vshlq_n_s32(vreinterpretq_s32_f32(x), 23), vdupq_n_s32(0x3F800000)));
  }
  struct Words {
    uint32x4_t a, b;
  };
  static Words words(const std::uint8_t* at) {
    const uint16x8_t x = vmovl_u8(vld1_u8(at));
    return {vmovl_u16(vget_low_u16(x)), vmovl_high_u16(x)};
  }
  template <int kFour>
  [[gnu::always_inline]] static void add_four(Ints* sum, Bytes v, int8x16_t a) {
    sum->a = vdotq_laneq_s32(sum->a, vreinterpretq_s8_u8(v.a), a, kFour);
    sum->b = vdotq_laneq_s32(sum->b, vreinterpretq_s8_u8(v.b), a, kFour);
  }
  template <int kFrom, int kTo, int kWidth>
  static uint8x16_t move_bits(uint8x16_t v) {
    if constexpr (kFrom > kTo) v = vshrq_n_u8(v, kFrom - kTo);
    if constexpr (kFrom < kTo) v = vshlq_n_u8(v, kTo - kFrom);
    // A shift alone moves the uppermost bits to the lowest place, or the lowest to the uppermost.
    if constexpr (kFrom > kTo && kTo == 0 && kFrom + kWidth == 8) return v;
    if constexpr (kFrom < kTo && kFrom == 0 && kTo + kWidth == 8) return v;
    return vandq_u8(v, vdupq_n_u8(((1 << kWidth) - 1) << kTo));
  }
};

#if defined(__ARM_FEATURE_MATMUL_INT8)
// smmla multiplies two rows of weights with two of activations, 8 columns each: twice what sdot
// does. Its operands are half rows, so vectors of four columns are zipped first. That costs as much
// as four rows of activations gain, so it is done only where it is done once for several tiles.
struct NeonI8mm : NeonDotprod {
  // Vectors j and j + 1 become the rows 0 to 3 and 4 to 7 of the same 8 columns.
  template <int kVectors>
  static void pair_columns(Bytes* v) {
    for (int j = 0; j < kVectors; j += 2) {
      const Bytes x = v[j];
      const Bytes y = v[j + 1];
      v[j] = {zip_low(x.a, y.a), zip_high(x.a, y.a)};
      v[j + 1] = {zip_low(x.b, y.b), zip_high(x.b, y.b)};
    }
  }

  template <int kVectors>
  [[gnu::always_inline]] static void dot_pair(const std::int32_t (&start)[2], const Bytes* v,
                                              const std::int8_t* const (&q)[2], Ints (&sums)[2]) {
    static_assert(kVectors % 4 == 0);
    // Lanes: weight row r with both rows of activations, then r + 1 with both.
    int32x4_t sum[4];
    for (int32x4_t& two : sum) two = vzip1q_s32(vdupq_n_s32(start[0]), vdupq_n_s32(start[1]));
    for (int j = 0; j < kVectors; j += 4) {
      const int64x2_t x = vreinterpretq_s64_s8(vld1q_s8(q[0] + 4 * j));
      const int64x2_t y = vreinterpretq_s64_s8(vld1q_s8(q[1] + 4 * j));
      multiply_pair(v + j, vreinterpretq_s8_s64(vzip1q_s64(x, y)), sum);
      multiply_pair(v + j + 2, vreinterpretq_s8_s64(vzip2q_s64(x, y)), sum);
    }
    sums[0] = {vuzp1q_s32(sum[0], sum[1]), vuzp1q_s32(sum[2], sum[3])};
    sums[1] = {vuzp2q_s32(sum[0], sum[1]), vuzp2q_s32(sum[2], sum[3])};
  }

 private:
  [[gnu::always_inline]] static void multiply_pair(const Bytes* v, int8x16_t a,
                                                   int32x4_t (&sum)[4]) {
    sum[0] = vmmlaq_s32(sum[0], vreinterpretq_s8_u8(v[0].a), a);
    sum[1] = vmmlaq_s32(sum[1], vreinterpretq_s8_u8(v[0].b), a);
    sum[2] = vmmlaq_s32(sum[2], vreinterpretq_s8_u8(v[1].a), a);
    sum[3] = vmmlaq_s32(sum[3], vreinterpretq_s8_u8(v[1].b), a);
  }
  static uint8x16_t zip_low(uint8x16_t x, uint8x16_t y) {
    return vreinterpretq_u8_u32(vzip1q_u32(vreinterpretq_u32_u8(x), vreinterpretq_u32_u8(y)));
  }
  static uint8x16_t zip_high(uint8x16_t x, uint8x16_t y) {
    return vreinterpretq_u8_u32(vzip2q_u32(vreinterpretq_u32_u8(x), vreinterpretq_u32_u8(y)));
  }
};
#endif

}  // namespace outrider::kernels
