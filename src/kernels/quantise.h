// Activations to 8 bits (kernels/activations.h), in plain C++ that the compiler makes vectors of.
//
// scale = largest magnitude / 127; value = activation / scale, rounded to the nearest, halves to
// even. Where all 32 are below 2^-100 in magnitude they count as zero. An infinity or a NaN makes
// the group's scale one, so that it reaches the outputs as it would in floats.
//
// `S` is only a name that keeps the copies for different instructions apart.
#pragma once

#include <cstdint>

#include "kernels/activations.h"

namespace outrider::kernels {

// Adding 1.5 * 2^23 leaves no bits behind the point, so the sum's low bits are the rounded value.
inline constexpr float kRounding = 12582912.0F;

template <class S>
void quantise_groups(const float* x, std::int64_t count, OffsetRule rule, ActivationGroup* out) {
  for (std::int64_t g = 0; g < count; ++g, x += 32, ++out) {
    // Magnitudes compare like their bits, and integers have a vector instruction for the largest.
    std::int32_t largest_bits = 0;
    for (int i = 0; i < 32; ++i) {
      const std::int32_t bits = __builtin_bit_cast(std::int32_t, x[i]) & 0x7FFFFFFF;
      largest_bits = bits > largest_bits ? bits : largest_bits;
    }
    const float largest = __builtin_bit_cast(float, largest_bits);
    const bool finite = largest_bits < 0x7F800000;
    const float inverse = finite && largest > 0x1p-100F ? 127.0F / largest : 0.0F;
    out->scale = !finite ? largest : inverse == 0.0F ? 0.0F : largest / 127.0F;
    std::int32_t sum[2] = {0, 0};
    for (int half = 0; half < 2; ++half) {
      std::int32_t total = 0;
      for (int i = 16 * half; i < 16 * half + 16; ++i) {
        const float scaled = finite ? x[i] * inverse : 0.0F;
        const std::int32_t value = __builtin_bit_cast(std::int32_t, scaled + kRounding) -
                                   __builtin_bit_cast(std::int32_t, kRounding);
        out->value[i] = static_cast<std::int8_t>(value);
        total += value;
      }
      sum[half] = total;
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
