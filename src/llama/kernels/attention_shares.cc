#include "llama/kernels/attention_shares.h"

#include <algorithm>

#include "llama/kernels/attention_rows.h"

namespace outrider::llama {
namespace {

using kernels::AttentionPart;
using kernels::QueryRow;

// Rows of a call over `n_cells` places.
std::size_t most_rows(const ggml_tensor* op, int nth, std::size_t n_cells) {
  const auto all = static_cast<std::size_t>(TextRows::most_tokens(op, nth) * op->src[0]->ne[2]);
  const auto n = static_cast<std::size_t>(nth);
  return std::min((all + n - 1) / n, std::max<std::size_t>(kMostScores / (n_cells + 128), 1));
}

// A thread's memory.
struct Share {
  Share(const ggml_tensor* op, int nth, std::uint8_t* memory) : text(op, nth, &memory) {
    const std::size_t rows = most_rows(op, nth, 0);
    whole = take<QueryRow>(&memory, rows);
    row = take<QueryRow>(&memory, rows);
    token = take<std::int32_t>(&memory, rows);
    part = take<AttentionPart>(&memory, rows);
    next_part = take<AttentionPart>(&memory, rows);
    sums = take<float>(&memory, rows * value_size(op));
    next_sums = take<float>(&memory, rows * value_size(op));
    // The fewer places there are, the more rows: the memory is for either.
    const auto n_cells = static_cast<std::size_t>(op->src[1]->ne[1]);
    const std::size_t but_scores =
        kernels::attention_scratch(static_cast<int>(rows), static_cast<int>(op->src[1]->ne[0]),
                                   static_cast<int>(value_size(op)), 0);
    scratch = take<float>(&memory, but_scores + std::max(kMostScores, n_cells + 128));
    end = memory;
  }

  TextRows text;
  QueryRow* whole;
  QueryRow* row;        // with a part of its cells
  std::int32_t* token;  // of the row
  AttentionPart* part;  // what rows of several parts have up to now
  AttentionPart* next_part;
  float* sums;
  float* next_sums;
  float* scratch;
  std::uint8_t* end;
};

// `n` rows of the text from `first` on.
void attend(const kernels::InstructionSet& set, const Share& share, int size, int first, int n) {
  const TextRows& text = share.text;
  int parts = 1;
  for (int i = 0; i < n; ++i) {
    share.whole[i] = share.row[i] = text.row(first + i);
    share.token[i] = text.token_of(first + i);
    parts = std::max(parts, text.parts_of(share.token[i]));
  }
  const kernels::Attention call = text.call(first, share.row, n);
  for (int part = 0; part < parts; ++part) {
    float* sums = part == 0 ? share.sums : share.next_sums;
    AttentionPart* to = part == 0 ? share.part : share.next_part;
    for (int i = 0; i < n; ++i) {
      text.set_part(share.token[i], part, sums + i * size, &to[i], &share.row[i]);
    }
    set.attend(call, share.scratch);
    for (int i = 0; i < n && part > 0; ++i) {
      if (part >= text.parts_of(share.token[i])) continue;
      set.join(share.sums + i * size, &share.part[i], share.next_sums + i * size,
               share.next_part[i], size);
    }
  }
  for (int i = 0; i < n; ++i) {
    if (text.parts_of(share.token[i]) == 1) continue;
    set.finish(share.whole[i], share.sums + i * size, share.part[i], size);
  }
}

}  // namespace

std::size_t attention_share_bytes(const ggml_tensor* op, int nth) {
  return reinterpret_cast<std::uintptr_t>(Share(op, nth, nullptr).end);
}

void run_attention_share(const kernels::InstructionSet& set, const ggml_tensor* op, int ith,
                         int nth, std::uint8_t* memory) {
  Share share(op, nth, memory);
  const auto size = static_cast<int>(value_size(op));
  int turn = ith;
  for (std::int64_t stream = 0; stream < op->src[0]->ne[3]; ++stream) {
    for (std::int64_t token = 0; token < op->src[0]->ne[1];) {
      token += share.text.load(stream, token);
      const std::int64_t rows = share.text.count();
      const auto begin = static_cast<int>(rows * turn / nth);
      const auto end = static_cast<int>(rows * (turn + 1) / nth);
      const auto most =
          static_cast<int>(most_rows(op, nth, static_cast<std::size_t>(share.text.widest())));
      for (int first = begin; first < end; first += most) {
        attend(set, share, size, first, std::min(most, end - first));
      }
      // Of texts with few rows not always the same threads get one more.
      turn = (turn + 1) % nth;
    }
  }
}

}  // namespace outrider::llama
