// An attention in ggml's graph, shared by its threads: each takes as many rows of queries as any
// other, in the order of heads, so that it reads the cells of as few heads as can be, side by side,
// and no thread reads what another wrote.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"
#include "kernels/instruction_set.h"

namespace outrider::llama {

class AttentionShares {
 public:
  // Memory that each of `nth` threads needs, a multiple of 64. `op` is one that
  // kernel_attention_takes(); nth >= 1.
  static std::size_t memory_bytes(const ggml_tensor* op, int nth);

  // The share of thread `ith` of `nth`. `memory`: [memory_bytes()], its own, aligned to 64 bytes.
  AttentionShares(const ggml_tensor* op, int ith, int nth, std::uint8_t* memory);

  void run(const kernels::InstructionSet& set);

 private:
  // Some tokens of a stream that see cells of one text.
  struct Tokens {
    std::int64_t stream = 0;
    std::int64_t first = 0;
    int n = 0;
  };

  Tokens tokens_from(std::int64_t stream, std::int64_t first);
  void attend(const kernels::InstructionSet& set, const Tokens& tokens);
  void fill_rows(const Tokens& tokens, std::int64_t begin, int n);

  const ggml_tensor* op_;
  int ith_;
  int nth_;
  std::int64_t n_share_;  // heads of queries to a head of keys
  bool mask_by_head_;
  kernels::QueryRow* tokens_;  // as the first head sees them
  kernels::QueryRow* rows_;    // of a call
  std::uint16_t* seen_;        // [cells]
  std::int32_t* cells_;        // [cells]
  float* scratch_;
};

}  // namespace outrider::llama
