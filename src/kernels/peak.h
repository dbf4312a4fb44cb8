// How many products of 8-bit values a processor can make a second, with one instruction set `S`.
#pragma once

#include <cstdint>

#include "kernels/strip.h"

namespace outrider::kernels {

// InstructionSet::multiply_in_registers: the products of a group of values up to 15, which every
// set multiplies fastest, with sums that do not wait for each other: a Zen 5 begins two products in
// each cycle and ends them four later, and makes 370 a nanosecond with four sums, 520 with eight.
template <class S>
std::int64_t multiply_in_registers(std::int64_t rounds) {
  constexpr int kSums = 8;
  alignas(64) std::uint8_t weights[kVectors][4 * S::kRows];
  std::int8_t activations[kSums][kGroup];
  for (int j = 0; j < kVectors; ++j) {
    for (int i = 0; i < 4 * S::kRows; ++i) weights[j][i] = static_cast<std::uint8_t>((i + j) & 15);
  }
  for (int c = 0; c < kSums; ++c) {
    for (int i = 0; i < kGroup; ++i) activations[c][i] = static_cast<std::int8_t>(i - c);
  }
  typename S::Bytes v[kVectors];
  for (int j = 0; j < kVectors; ++j) v[j] = S::load(weights[j]);
  typename S::Ints sum[kSums];
  for (int c = 0; c < kSums; ++c) sum[c] = S::set_int(0);
  for (std::int64_t round = 0; round < rounds; ++round) {
    // The activations may have changed: or compilers multiply once, and only add from then on.
    asm volatile("" : "+m"(activations));
    for (int c = 0; c < kSums; ++c) {
      sum[c] = S::template dot<Values::kTo15, kVectors>(sum[c], v, activations[c]);
    }
  }
  // The result is looked at, so that it has to be computed.
  alignas(64) float out[S::kRows];
  for (int c = 0; c < kSums; ++c) {
    S::store_floats(out, S::to_float(sum[c]));
    asm volatile("" : : "r"(out) : "memory");
  }
  return rounds * kSums * kGroup * S::kRows;
}

}  // namespace outrider::kernels
