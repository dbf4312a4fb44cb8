// Products of packed weights and rows of activations, cut up for threads: what one thread of many
// does. ggml's graph calls it through llama/kernels/kernel_operations.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/instruction_set.h"
#include "kernels/packed.h"

namespace outrider::llama {

// Rows of activations as the kernels take them, in memory that all threads share: quantised, or
// copied for float weights.
class ActivationRows {
 public:
  ActivationRows(const kernels::InstructionSet& set, kernels::WeightType type,
                 std::int64_t n_columns);

  std::size_t row_bytes() const { return row_bytes_; }

  // One row, [n_columns] floats, to `row_bytes()` bytes.
  void write(const float* x, std::uint8_t* out) const;

  // The part of a row that thread `ith` of `nth` writes when there are fewer rows than threads; it
  // is returned.
  std::span<const std::uint8_t> write_part(const float* x, int ith, int nth,
                                           std::uint8_t* out) const;

 private:
  const kernels::InstructionSet& set_;
  kernels::OffsetRule rule_;
  bool is_float_;
  std::int64_t n_columns_;
  std::size_t row_bytes_;
};

// Where the product's rows of outputs go.
class OutputRows {
 public:
  virtual ~OutputRows() = default;
  virtual float* row(std::int64_t i) const = 0;
};

// A packed matrix and how its strips are handed to threads.
class StripProduct {
 public:
  // `n_rows` of activations in all; `nth` threads.
  StripProduct(const kernels::InstructionSet& set, const kernels::PackedLayout& layout,
               std::int64_t n_rows, int nth);

  // Strips are handed out in pieces of a few; those of one piece stay in the cache while all rows
  // of activations pass.
  std::int64_t n_pieces() const { return n_pieces_; }

  // Multiplies the strips of one piece with rows of activations at `activations`, [n_rows,
  // row_bytes], and writes outputs of row i to out.row(i).
  void multiply(std::int64_t piece, const std::uint8_t* packed, const std::uint8_t* activations,
                std::size_t row_bytes, std::int64_t n_rows, const OutputRows& out) const;

 private:
  const kernels::InstructionSet& set_;
  const kernels::PackedLayout& layout_;
  std::int64_t strips_of_piece_;
  std::int64_t n_pieces_;
};

}  // namespace outrider::llama
