#include "llama/kernels/attention_parts.h"

#include <algorithm>

namespace outrider::llama {
namespace {

using kernels::AttentionPart;
using kernels::QueryRow;

// What the parts give: 16 MiB.
constexpr std::size_t kMostSums = std::size_t{1} << 22;
// Places of a part: more where the cells of texts that have some in common lie between each other.
constexpr int kWidest = 2 * TextRows::kPartCells;

std::size_t all_rows(const ggml_tensor* op) {
  return static_cast<std::size_t>(op->src[0]->ne[1] * op->src[0]->ne[2]);
}
std::size_t most_parts(const ggml_tensor* op) {
  return static_cast<std::size_t>(op->src[1]->ne[1]) / TextRows::kPartCells + 1;
}
std::size_t scratch_floats(const ggml_tensor* op) {
  return kernels::attention_scratch(static_cast<int>(all_rows(op)),
                                    static_cast<int>(op->src[1]->ne[0]),
                                    static_cast<int>(value_size(op)), kWidest);
}
std::size_t own_bytes(const ggml_tensor* op) {
  std::uint8_t* end = nullptr;
  const TextRows text(op, 1, &end);
  take<QueryRow>(&end, all_rows(op));
  take<float>(&end, scratch_floats(op));
  return reinterpret_cast<std::uintptr_t>(end);
}

}  // namespace

bool AttentionParts::may_suit(const ggml_tensor* op, int nth) {
  // Where shares of rows end within heads, several threads would read the same cells: 1, 4 and 16
  // tokens behind 2,048 cells took 5.3, 7.6 and 16.2 ms a step in place of 4.7, 6.3 and 15.4
  // (SmolLM2-135M, which has three heads of keys, two threads of a Zen 5).
  const bool shares_cut_heads = op->src[1]->ne[2] % nth != 0;
  return nth > 1 && shares_cut_heads && op->src[0]->ne[3] == 1 &&
         op->src[0]->ne[1] <= TextRows::most_tokens(op, 1) &&
         all_rows(op) * (kWidest + 64) <= kMostScores && op->src[1]->ne[1] > TextRows::kPartCells &&
         most_parts(op) * all_rows(op) * value_size(op) <= kMostSums;
}

std::size_t AttentionParts::memory_bytes(const ggml_tensor* op, int nth) {
  std::uint8_t* end = nullptr;
  take<float>(&end, most_parts(op) * all_rows(op) * value_size(op));
  take<AttentionPart>(&end, most_parts(op) * all_rows(op));
  return reinterpret_cast<std::uintptr_t>(end) + static_cast<std::size_t>(nth) * own_bytes(op);
}

AttentionParts::AttentionParts(const ggml_tensor* op, int ith, int nth, std::uint8_t* memory)
    : ith_(ith),
      nth_(nth),
      size_(value_size(op)),
      sums_(take<float>(&memory, most_parts(op) * all_rows(op) * size_)),
      parts_(take<AttentionPart>(&memory, most_parts(op) * all_rows(op))),
      own_(memory + static_cast<std::size_t>(ith) * own_bytes(op)),
      text_(op, 1, &own_),
      rows_(take<QueryRow>(&own_, all_rows(op))),
      scratch_(take<float>(&own_, scratch_floats(op))) {
  const bool one_text = text_.load(0, 0) == op->src[0]->ne[1];
  suits_ = one_text && text_.widest() <= kWidest && is_balanced();
}

// Whether the thread with the most to do has not much more than it would have by rows.
bool AttentionParts::is_balanced() const {
  const auto most = [this](std::int64_t n) { return (n + nth_ - 1) / nth_; };
  const std::int64_t by_parts = most(text_.parts()) * text_.count();
  const std::int64_t by_rows = most(text_.count()) * text_.parts();
  return text_.parts() >= nth_ && 4 * by_parts <= 5 * by_rows;
}

void AttentionParts::run(const kernels::InstructionSet& set, int part) const {
  for (int r = 0; r < text_.count(); ++r) {
    rows_[r] = text_.row(r);
    text_.set_part(text_.token_of(r), part, sums(part, r), &this->part(part, r), &rows_[r]);
  }
  set.attend(text_.call(0, rows_, text_.count()), scratch_);
}

void AttentionParts::join(const kernels::InstructionSet& set) const {
  const int size = static_cast<int>(size_);
  const std::int64_t n = text_.count();
  for (auto r = static_cast<int>(n * ith_ / nth_); r < n * (ith_ + 1) / nth_; ++r) {
    const int parts = text_.parts_of(text_.token_of(r));
    for (int p = 1; p < parts; ++p) set.join(sums(0, r), &part(0, r), sums(p, r), part(p, r), size);
    if (parts > 1) set.finish(text_.row(r), sums(0, r), part(0, r), size);
  }
}

}  // namespace outrider::llama
