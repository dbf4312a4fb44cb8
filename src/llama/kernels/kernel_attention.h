// Attention in Outrider's own kernels: which of ggml's attentions they take, and how one is cut up
// for threads. ggml's graph calls it through llama/kernels/kernel_operations.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"
#include "kernels/instruction_set.h"

namespace outrider::llama {

// True for a FLASH_ATTN_EXT of types and sizes that kernels/attention.h takes, none of them zero,
// without a bias that grows with the distance (ALiBi) and without soft caps.
bool kernel_attention_takes(const ggml_tensor* op);

// An attention, cut into pieces: some tokens' queries of the heads that share one head of keys.
class AttentionPieces {
 public:
  // `op` is one that kernel_attention_takes(); `nth` threads, >= 1.
  AttentionPieces(const ggml_tensor* op, int nth);

  std::int64_t count() const { return n_streams_ * n_key_heads_ * n_splits_ * n_blocks_; }

  // Memory that a thread needs for run(), a multiple of 64.
  std::size_t scratch_bytes() const;

  // `scratch` is aligned to 64 bytes. Different threads may run different pieces at once.
  void run(const kernels::InstructionSet& set, std::int64_t piece, std::uint8_t* scratch) const;

 private:
  // `before`: the row before it in the piece, or null.
  kernels::QueryRow query_row(std::int64_t token, std::int64_t head, std::int64_t stream,
                              const kernels::QueryRow* before) const;
  std::size_t seen_bytes() const;
  std::size_t list_bytes() const;

  const ggml_tensor* op_;
  std::int64_t n_streams_;
  std::int64_t n_key_heads_;
  std::int64_t n_tokens_;
  std::int64_t n_heads_;       // of queries in a piece
  std::int64_t n_splits_;      // pieces that the heads of one head of keys are cut into
  std::int64_t block_tokens_;  // tokens of a piece
  std::int64_t n_blocks_;
};

}  // namespace outrider::llama
