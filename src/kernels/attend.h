// InstructionSet::attend (kernels/attention.h) for one instruction set `S` of kernels/strip.h.
//
// Idea. Cells are worked on in tiles of as many as a vector of `S` has lanes. A tile of keys is
// made floats and transposed once for all rows, so that a step of several tokens, and the heads of
// a group, share that; four rows at a time have the scores of a tile in registers. Values are taken
// the same way, with the dimensions of a head in the lanes. Both are the same product, of numbers
// that are broadcast and rows of lanes.
//
// All heads of a tile are worked on before the next tile, since a cell's heads lie side by side:
// what is fetched ahead (AttendTiles::Ahead) then comes in the order of memory, and over 8,192
// cells a head takes 90 us in place of 170 (Zen 5).
#pragma once

#include "kernels/attend_scores.h"
#include "kernels/attend_values.h"
#include "kernels/attend_weights.h"

namespace outrider::kernels {

template <class S>
void attend(const Attention& call, float* scratch) {
  const AttentionExtent seen = extent_of(call);
  float* scores = scratch;
  float* divisors = scores + static_cast<std::size_t>(call.n_rows) * seen.stride;
  float* rest = divisors + attention_padded(call.n_rows);
  AttendScores<S>(call, seen, scores, rest).run();
  AttendWeights<S>(call, seen, scores, divisors).run();
  AttendValues<S>(call, seen, scores, divisors, rest).run();
}

}  // namespace outrider::kernels
