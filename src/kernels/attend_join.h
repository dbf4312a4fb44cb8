// InstructionSet::join and finish: what an attention gave for parts of a row's cells, put together.
//
// Source: the running softmax of Milakov and Gimelshein, "Online normalizer calculation for
// softmax" (2018), by parts in place of scores.
#pragma once

#include "kernels/attend_weights.h"

namespace outrider::kernels {

template <class S>
void join_parts(float* sums, AttentionPart* part, const float* next_sums,
                const AttentionPart& next_part, int size) {
  if (next_part.divisor == 0.0F) return;  // all weights are zero
  const float largest = next_part.largest > part->largest ? next_part.largest : part->largest;
  const float before = weight_of<S>(part->largest, largest);
  const float next = weight_of<S>(next_part.largest, largest);
  for (int d = 0; d < size; ++d) {
    sums[d] = __builtin_fmaf(next_sums[d], next, sums[d] * before);
  }
  *part = {largest, __builtin_fmaf(next_part.divisor, next, part->divisor * before)};
}

template <class S>
void finish_row(const QueryRow& row, const float* sums, const AttentionPart& part, int size) {
  float divisor = part.divisor;
  float factor = 1.0F;
  if (row.has_sink && (part.largest != kMinusInfinity || row.sink != kMinusInfinity)) {
    const float largest = part.largest > row.sink ? part.largest : row.sink;
    factor = weight_of<S>(part.largest, largest);
    divisor = __builtin_fmaf(divisor, factor, weight_of<S>(row.sink, largest));
  }
  const float inverse = divisor == 0.0F ? 0.0F : factor / divisor;
  for (int d = 0; d < size; ++d) row.out[d] = sums[d] * inverse;
}

}  // namespace outrider::kernels
