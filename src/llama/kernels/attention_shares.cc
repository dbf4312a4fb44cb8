#include "llama/kernels/attention_shares.h"

#include <algorithm>

#include "llama/kernels/attention_rows.h"

namespace outrider::llama {
namespace {

using kernels::QueryRow;

// Rows of a head that are worked on together: reading a tile of keys for 64 of them costs next to
// nothing.
constexpr std::int64_t kMostRows = 64;
// Scores of such rows: 2 MiB, 64 rows over 8,192 cells. Over more cells there are fewer rows.
constexpr std::int64_t kMostScores = std::int64_t{1} << 19;
// Scores of several heads that are worked on together, which stay in the second-level cache.
constexpr std::int64_t kCachedScores = std::int64_t{1} << 17;

std::int64_t heads_of_queries(const ggml_tensor* op) { return op->src[0]->ne[2]; }
std::int64_t heads_to_a_key(const ggml_tensor* op) {
  return heads_of_queries(op) / op->src[1]->ne[2];
}
std::int64_t all_cells(const ggml_tensor* op) { return op->src[1]->ne[1]; }

std::int64_t most_tokens(const ggml_tensor* op) {
  return std::clamp<std::int64_t>(kMostRows / heads_to_a_key(op), 1, op->src[0]->ne[1]);
}

// Rows of a call over `n_cells`.
std::int64_t most_rows(const ggml_tensor* op, int nth, std::int64_t n_cells) {
  const std::int64_t cells = std::max<std::int64_t>(n_cells, 1);
  const std::int64_t rows =
      std::max({std::min(kMostRows, kMostScores / cells), kCachedScores / cells, std::int64_t{1}});
  const std::int64_t share = (most_tokens(op) * heads_of_queries(op) + nth - 1) / nth;
  return std::min(rows, share);
}

// The next bytes of `memory`, which moves behind them.
template <class T>
T* take(std::uint8_t** memory, std::int64_t n) {
  auto* at = reinterpret_cast<T*>(*memory);
  *memory += GGML_PAD(static_cast<std::size_t>(n) * sizeof(T), 64);
  return at;
}

}  // namespace

std::size_t AttentionShares::memory_bytes(const ggml_tensor* op, int nth) {
  std::uint8_t* end = nullptr;
  const AttentionShares layout(op, 0, nth, end);
  end = reinterpret_cast<std::uint8_t*>(layout.scratch_);
  // The fewer cells a call has, the more rows: the memory is for either.
  const auto rows = static_cast<int>(most_rows(op, nth, 1));
  const std::int64_t cells = all_cells(op);
  const std::size_t but_scores = kernels::attention_scratch(
      rows, static_cast<int>(op->src[1]->ne[0]), static_cast<int>(op->src[2]->ne[0]), 64);
  const std::int64_t scores = std::min(std::max(kMostScores, cells), rows * cells);
  take<float>(&end, static_cast<std::int64_t>(but_scores) + scores);
  return reinterpret_cast<std::uintptr_t>(end);
}

AttentionShares::AttentionShares(const ggml_tensor* op, int ith, int nth, std::uint8_t* memory)
    : op_(op),
      ith_(ith),
      nth_(nth),
      n_share_(heads_to_a_key(op)),
      mask_by_head_(op->src[3] != nullptr && op->src[3]->ne[2] != 1),
      tokens_(take<QueryRow>(&memory, most_tokens(op))),
      rows_(take<QueryRow>(&memory, most_rows(op, nth, 1))),
      seen_(take<std::uint16_t>(&memory, all_cells(op))),
      cells_(take<std::int32_t>(&memory, all_cells(op))),
      scratch_(reinterpret_cast<float*>(memory)) {}

// Fills tokens_, too.
AttentionShares::Tokens AttentionShares::tokens_from(std::int64_t stream, std::int64_t first) {
  const std::int64_t end = std::min(first + most_tokens(op_), op_->src[0]->ne[1]);
  Tokens tokens{.stream = stream, .first = first};
  for (std::int64_t t = first; t < end; ++t) {
    QueryRow& row = tokens_[tokens.n];
    row = query_row(op_, t, 0, stream, tokens.n > 0 ? &tokens_[tokens.n - 1] : nullptr);
    // The cells of several texts lie between each other, and none sees another's.
    if (!shares_cells(tokens_[0], row)) break;
    ++tokens.n;
  }
  return tokens;
}

// Rows of a head and token lie side by side, then a head's tokens.
void AttentionShares::fill_rows(const Tokens& tokens, std::int64_t begin, int n) {
  for (int i = 0; i < n; ++i) {
    const std::int64_t in_head = (begin + i) % (tokens.n * n_share_);
    const std::int64_t key_head = (begin + i) / (tokens.n * n_share_);
    const std::int64_t token = in_head / n_share_;
    const std::int64_t head = key_head * n_share_ + in_head % n_share_;
    rows_[i] = query_row(op_, tokens.first + token, head, tokens.stream, &tokens_[token]);
    if (mask_by_head_) continue;
    rows_[i].begin = tokens_[token].begin;
    rows_[i].end = tokens_[token].end;
  }
}

void AttentionShares::attend(const kernels::InstructionSet& set, const Tokens& tokens) {
  const bool listed = !mask_by_head_ && list_cells(tokens_, tokens.n, seen_, cells_);
  int begin = static_cast<int>(all_cells(op_));
  int end = 0;
  for (int t = 0; t < tokens.n; ++t) {
    begin = std::min(begin, tokens_[t].begin);
    end = std::max(end, tokens_[t].end);
  }
  const std::int64_t cells = mask_by_head_ ? all_cells(op_) : std::max(end - begin, 0);
  const std::int64_t rows = heads_of_queries(op_) * tokens.n;
  const std::int64_t most = most_rows(op_, nth_, cells);
  const std::int64_t last = rows * (ith_ + 1) / nth_;
  for (std::int64_t row = rows * ith_ / nth_; row < last;) {
    const auto n = static_cast<int>(std::min(most, last - row));
    fill_rows(tokens, row, n);
    const std::int64_t head_rows = tokens.n * n_share_;
    const std::int64_t head = row / head_rows * n_share_;
    set.attend({.keys = cache_heads(op_, op_->src[1], head, tokens.stream),
                .values = cache_heads(op_, op_->src[2], head, tokens.stream),
                .scale = attention_parameter(op_, 0),
                .cells = listed ? cells_ : nullptr,
                .rows = rows_,
                .n_rows = n,
                .head_rows = static_cast<int>(head_rows),
                .first = static_cast<int>(row % head_rows)},
               scratch_);
    row += n;
  }
}

void AttentionShares::run(const kernels::InstructionSet& set) {
  for (std::int64_t stream = 0; stream < op_->src[0]->ne[3]; ++stream) {
    for (std::int64_t first = 0; first < op_->src[0]->ne[1];) {
      const Tokens tokens = tokens_from(stream, first);
      attend(set, tokens);
      first += tokens.n;
    }
  }
}

}  // namespace outrider::llama
