// The rows of queries of an attention in ggml's graph, and the cells that they see, as
// kernels/attention.h takes them. `op` is one that kernel_attention_takes().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ggml.h"
#include "kernels/attention.h"
#include "kernels/weight_type.h"

namespace outrider::llama {

// That of a cache of keys or values; none that attention does not take.
std::optional<kernels::WeightType> cache_type(const ggml_tensor* cells);

// Parameter i of the operation: the scale, the bias that grows with the distance, the soft cap.
float attention_parameter(const ggml_tensor* op, int i);

// Floats of a row of values.
inline std::size_t value_size(const ggml_tensor* op) {
  return static_cast<std::size_t>(op->src[2]->ne[0]);
}

// Scores of rows that are worked on together: 512 KiB, which stay in the second-level cache.
inline constexpr std::size_t kMostScores = std::size_t{1} << 17;

// Some tokens of a stream that see cells of one text, whose rows are all of their heads': of one
// head of keys behind those of the one before, there of one token behind those of the one before.
//
// A row's cells are taken in parts of kPartCells that it sees, from its first on, whatever lies
// between them; so parts, too, depend on nothing but the row.
class TextRows {
 public:
  static constexpr int kPartCells = 256;

  // Tokens that are taken together at most, for `nth` threads to share.
  static std::int64_t most_tokens(const ggml_tensor* op, int nth);

  // `memory`: moves behind what this needs of it, a multiple of 64 bytes. Null: only that.
  TextRows(const ggml_tensor* op, int nth, std::uint8_t** memory);

  // Those from token `first` of the stream on. Returns how many tokens.
  int load(std::int64_t stream, std::int64_t first);

  int count() const { return n_tokens_ * static_cast<int>(op_->src[0]->ne[2]); }
  int parts() const { return most_parts_; }
  // The most places from the first to the last cell of a part.
  int widest() const { return widest_; }

  // A row with all of its cells.
  kernels::QueryRow row(int row) const;
  int token_of(int row) const { return row % head_rows() / share_; }

  // How many parts the rows of a token have, at least one.
  int parts_of(int token) const { return n_parts_[token]; }
  // `row` with one part of its cells, to be joined to others; with none for a part that it does not
  // have.
  void set_part(int token, int part, float* sums, kernels::AttentionPart* to,
                kernels::QueryRow* row) const;

  // An attention of `rows`, made with row(), which are those from `first` on.
  kernels::Attention call(int first, const kernels::QueryRow* rows, int n_rows) const;

 private:
  int head_rows() const { return n_tokens_ * share_; }
  void cut(int token, std::int32_t* bounds);

  const ggml_tensor* op_;
  std::int64_t most_tokens_;
  int share_;  // heads of queries to a head of keys
  std::size_t most_bounds_;
  kernels::QueryRow* tokens_;  // as the first head sees them
  std::int32_t* n_parts_;      // of each token
  std::int32_t* bounds_;       // of the parts of each token, [most_bounds_] each
  std::uint16_t* seen_;        // [cells]
  std::int32_t* cells_;        // [cells]
  std::int64_t stream_ = 0;
  std::int64_t first_ = 0;
  int n_tokens_ = 0;
  int most_parts_ = 0;
  int widest_ = 0;
  bool listed_ = false;
};

// The next `n` of `memory`, which moves behind them to a multiple of 64 bytes.
template <class T>
T* take(std::uint8_t** memory, std::size_t n) {
  auto* at = reinterpret_cast<T*>(*memory);
  *memory = reinterpret_cast<std::uint8_t*>(reinterpret_cast<std::uintptr_t>(*memory) +
                                            GGML_PAD(n * sizeof(T), 64));
  return at;
}

}  // namespace outrider::llama
