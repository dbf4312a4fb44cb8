// An attention in ggml's graph, shared by its threads by rows: each takes as many as any other, in
// the order of heads, so that it reads the cells of as few heads as can be, side by side, and no
// thread reads what another wrote. llama/kernels/attention_parts.h is the other way, with the same
// bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"
#include "kernels/instruction_set.h"

namespace outrider::llama {

// Memory that each of `nth` threads needs, a multiple of 64. `op` is one that
// kernel_attention_takes(); nth >= 1.
std::size_t attention_share_bytes(const ggml_tensor* op, int nth);

// The share of thread `ith`. `memory`: [attention_share_bytes()], its own, aligned to 64 bytes.
void run_attention_share(const kernels::InstructionSet& set, const ggml_tensor* op, int ith,
                         int nth, std::uint8_t* memory);

}  // namespace outrider::llama
