#include "kernels/attention.h"

#include <algorithm>

#include "kernels/instruction_set.h"

namespace outrider::kernels {

SeenRange seen_range(const Attention& call) {
  SeenRange seen;
  for (int r = 0; r < call.n_rows; ++r) {
    const QueryRow& row = call.rows[r];
    if (row.begin >= row.end) continue;
    seen.first = seen.end == 0 ? row.begin : std::min(seen.first, row.begin);
    seen.end = std::max(seen.end, row.end);
  }
  return seen;
}

int attention_blocks(const Attention& call, AttentionStep step) {
  const auto blocks = [](int n) { return (n + kAttentionBlock - 1) / kAttentionBlock; };
  switch (step) {
    case AttentionStep::kScores: {
      const SeenRange seen = seen_range(call);
      return blocks(seen.end - seen.first);
    }
    case AttentionStep::kWeights:
      return call.n_rows;
    case AttentionStep::kValues:
      return call.n_heads() * blocks(call.values.size);
  }
  return 0;
}

void attend(const InstructionSet& set, const Attention& call, float* scratch) {
  const SeenRange seen = seen_range(call);
  const AttentionMemory memory{
      .shared = scratch, .own = scratch + attention_shared(call.n_rows, seen.end - seen.first)};
  for (const auto step :
       {AttentionStep::kScores, AttentionStep::kWeights, AttentionStep::kValues}) {
    set.attend(call, {step, 0, attention_blocks(call, step)}, memory);
  }
}

}  // namespace outrider::kernels
