// An attention in ggml's graph, shared by its threads by the parts of cells (TextRows): each part
// is computed for all rows, then they are joined, row by row. So each cell is read once whatever
// the number of heads, but what the parts give goes from thread to thread: for few tokens of a long
// text, where threads that share rows (llama/kernels/attention_shares.h) would read the same heads.
// The bits are the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"
#include "kernels/instruction_set.h"
#include "llama/kernels/attention_rows.h"

namespace outrider::llama {

class AttentionParts {
 public:
  // Whether this may be the better way for `nth` threads, by the shape alone. `op` is one that
  // kernel_attention_takes().
  static bool may_suit(const ggml_tensor* op, int nth);

  // For all threads together, a multiple of 64; for an `op` that may_suit().
  static std::size_t memory_bytes(const ggml_tensor* op, int nth);

  // For thread `ith` of `nth`. `memory`: [memory_bytes()], the same for all, aligned to 64 bytes.
  AttentionParts(const ggml_tensor* op, int ith, int nth, std::uint8_t* memory);

  // Whether it is, by the cells that are seen. All threads find alike.
  bool suits() const { return suits_; }

  // Pieces of the work, each for one thread. All have to be done before join().
  int count() const { return text_.parts(); }
  void run(const kernels::InstructionSet& set, int part) const;

  // This thread's part of what is left.
  void join(const kernels::InstructionSet& set) const;

 private:
  bool is_balanced() const;
  float* sums(int part, int row) const { return sums_ + at(part, row) * size_; }
  kernels::AttentionPart& part(int part, int row) const { return parts_[at(part, row)]; }
  std::size_t at(int part, int row) const {
    return static_cast<std::size_t>(part) * static_cast<std::size_t>(text_.count()) +
           static_cast<std::size_t>(row);
  }

  int ith_;
  int nth_;
  std::size_t size_;               // of a row of values
  float* sums_;                    // [parts, rows, size_]; those of the first part join the others
  kernels::AttentionPart* parts_;  // [parts, rows]
  std::uint8_t* own_;              // this thread's, of which the next three are made
  TextRows text_;
  kernels::QueryRow* rows_;
  float* scratch_;
  bool suits_;
};

}  // namespace outrider::llama
