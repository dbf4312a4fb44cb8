// Activations to 8 bits (kernels/activations.h), in plain C++ that the compiler makes vectors of.
//
// scale = largest magnitude / 127; value = activation / scale, rounded to the nearest, halves to
// even. Where all 32 are below 2^-100 in magnitude they count as zero. An infinity or a NaN makes
// the group's scale one, so that it reaches the outputs as it would in floats.
//
// `S` wraps instructions (kernels/strip.h), or is only a name that keeps the copies for different
// instructions apart. It may have what compilers do not find by themselves (62 cycles a group):
//   largest_magnitude(x)                the bits of the largest |x[i]|, i < 32
//   round_to_bytes(x, factor, out, sums)  out[i] = x[i] * factor, rounded; the sums of both halves
#pragma once

#include <cstdint>

#include "kernels/activations.h"

namespace outrider::kernels {

// Adding 1.5 * 2^23 leaves no bits behind the point, so the sum's low bits are the rounded value.
inline constexpr float kRounding = 12582912.0F;

// Magnitudes compare like their bits, and integers have a vector instruction for the largest.
template <class S>
std::int32_t largest_magnitude(const float* x) {
  if constexpr (requires { S::largest_magnitude(x); }) {
    return S::largest_magnitude(x);
  } else {
    std::int32_t largest = 0;
    for (int i = 0; i < 32; ++i) {
      const std::int32_t bits = __builtin_bit_cast(std::int32_t, x[i]) & 0x7FFFFFFF;
      largest = bits > largest ? bits : largest;
    }
    return largest;
  }
}

template <class S>
void round_to_bytes(const float* x, float factor, std::int8_t* out, std::int32_t* sums) {
  if constexpr (requires { S::round_to_bytes(x, factor, out, sums); }) {
    S::round_to_bytes(x, factor, out, sums);
  } else {
    for (int half = 0; half < 2; ++half) {
      std::int32_t total = 0;
      for (int i = 16 * half; i < 16 * half + 16; ++i) {
        const std::int32_t value = __builtin_bit_cast(std::int32_t, x[i] * factor + kRounding) -
                                   __builtin_bit_cast(std::int32_t, kRounding);
        out[i] = static_cast<std::int8_t>(value);
        total += value;
      }
      sums[half] = total;
    }
  }
}

template <class S>
void quantise_groups(const float* x, std::int64_t count, OffsetRule rule, ActivationGroup* out) {
  for (std::int64_t g = 0; g < count; ++g, x += 32, ++out) {
    const std::int32_t largest_bits = largest_magnitude<S>(x);
    const float largest = __builtin_bit_cast(float, largest_bits);
    const bool finite = largest_bits < 0x7F800000;
    const float inverse = finite && largest > 0x1p-100F ? 127.0F / largest : 0.0F;
    out->scale = !finite ? largest : inverse == 0.0F ? 0.0F : largest / 127.0F;
    std::int32_t sum[2] = {0, 0};
    if (finite) {
      round_to_bytes<S>(x, inverse, out->value, sum);
    } else {
      __builtin_memset(out->value, 0, sizeof out->value);
    }
    if (rule.group == 32) sum[0] += sum[1];
    for (int part = 0; part < 2; ++part) {
      out->offset[part] =
          rule.has_minimum
              ? __builtin_bit_cast(std::int32_t, out->scale * static_cast<float>(sum[part]))
              : -rule.zero * sum[part];
    }
  }
}

}  // namespace outrider::kernels
