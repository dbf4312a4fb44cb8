#include "llama/kernels/kernel_attention.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace outrider::llama {
namespace {

using kernels::QueryRow;
using kernels::WeightType;

// Rows of queries in a piece. Reading a tile of keys for 64 of them costs next to nothing.
constexpr std::int64_t kMostRows = 64;

// Their scores, of which every thread has its own: 2 MiB, 64 rows over 8,192 cells. Over more cells
// there are fewer rows, down to one token's.
constexpr std::int64_t kMostScores = std::int64_t{1} << 19;

constexpr std::uint16_t kMasked = 0xFC00;  // minus infinity, as an IEEE half

std::optional<WeightType> cache_type(const ggml_tensor* cells) {
  switch (cells->type) {
    case GGML_TYPE_F32:
      return WeightType::kF32;
    case GGML_TYPE_F16:
      return WeightType::kF16;
    case GGML_TYPE_BF16:
      return WeightType::kBf16;
    case GGML_TYPE_Q8_0:
      return WeightType::kQ80;
    default:
      return std::nullopt;
  }
}

bool is_taken_cache(const ggml_tensor* cells) {
  return cache_type(cells) && cells->ne[0] <= kernels::kMaxHeadSize &&
         cells->ne[0] % ggml_blck_size(cells->type) == 0 &&
         cells->nb[0] == ggml_type_size(cells->type);
}

// Where element [0, i1, i2, i3] lies; an index beyond a dimension starts again, as ggml broadcasts.
template <class T>
T* at(const ggml_tensor* t, std::int64_t i1, std::int64_t i2, std::int64_t i3) {
  const auto part = [t](std::int64_t i, int dimension) {
    return static_cast<std::size_t>(i % t->ne[dimension]) * t->nb[dimension];
  };
  return reinterpret_cast<T*>(static_cast<char*>(t->data) + part(i1, 1) + part(i2, 2) +
                              part(i3, 3));
}

// The head of stream `stream` that head `head` of the queries looks at: neighbours share one.
kernels::CacheHeads cache_head(const ggml_tensor* op, const ggml_tensor* cells, std::int64_t head,
                               std::int64_t stream) {
  const ggml_tensor* q = op->src[0];
  const std::int64_t i2 = head / (q->ne[2] / cells->ne[2]);
  const std::int64_t i3 = stream / (q->ne[3] / cells->ne[3]);
  return {.type = *cache_type(cells),
          .bytes = at<const std::uint8_t>(cells, 0, i2, i3),
          .stride = cells->nb[1],
          .size = static_cast<int>(cells->ne[0])};
}

// The cells that are not masked lie in [begin, end).
void find_range(const std::uint16_t* mask, QueryRow* row) {
  const auto is_masked = [mask](int cell, int n) {
    constexpr std::uint64_t kFour = 0x0001000100010001U * kMasked;
    std::uint64_t bits = kFour;
    std::memcpy(&bits, mask + cell, static_cast<std::size_t>(n) * sizeof *mask);
    return bits == kFour;
  };
  while (row->begin + 4 <= row->end && is_masked(row->begin, 4)) row->begin += 4;
  while (row->begin < row->end && is_masked(row->begin, 1)) ++row->begin;
  while (row->end - 4 >= row->begin && is_masked(row->end - 4, 4)) row->end -= 4;
  while (row->end > row->begin && is_masked(row->end - 1, 1)) --row->end;
}

// Whether two rows are of one text, or of texts that have cells in common: one sees the first cell
// that the other sees.
bool shares_cells(const QueryRow& a, const QueryRow& b) {
  if (a.mask == nullptr || a.begin >= a.end || b.begin >= b.end) return true;
  return a.mask[b.begin] != kMasked || b.mask[a.begin] != kMasked;
}

// Whether it does not see each cell of its range.
bool has_gaps(const QueryRow& row) {
  const std::uint16_t* const mask = row.mask;
  std::uint16_t gaps = 0;
  for (int c = row.begin; c < row.end; ++c) {
    gaps = static_cast<std::uint16_t>(gaps | (mask[c] == kMasked ? 1 : 0));
  }
  return gaps != 0;
}

// Writes where `mask` is not `masked`, from `begin` up to `end`, to `cells`; returns how many. Four
// at a time: where texts lie between each other, most are masked.
std::int32_t list_open(const std::uint16_t* mask, std::uint16_t masked, int begin, int end,
                       std::int32_t* cells) {
  const std::uint64_t four = 0x0001000100010001U * masked;
  std::int32_t n = 0;
  for (int c = begin; c < end; c += 4) {
    const int last = std::min(c + 4, end);
    std::uint64_t bits = four;
    std::memcpy(&bits, mask + c, static_cast<std::size_t>(last - c) * sizeof *mask);
    if (bits == four) continue;
    for (int one = c; one < last; ++one) {
      cells[n] = one;
      n += mask[one] != masked ? 1 : 0;
    }
  }
  return n;
}

// The cells that some of the rows see, in `cells`, and the rows' ranges as places among them.
// False, and nothing changed, where that is a range without gaps. `seen` and `cells`: [cells of the
// cache]
bool list_cells(QueryRow* rows, int n_rows, std::uint16_t* seen, std::int32_t* cells) {
  int begin = rows[0].begin;
  int end = rows[0].end;
  bool one_mask = true;
  for (int r = 0; r < n_rows; ++r) {
    if (rows[r].mask == nullptr) return false;
    begin = std::min(begin, rows[r].begin);
    end = std::max(end, rows[r].end);
    one_mask = one_mask && rows[r].mask == rows[0].mask;
  }
  const auto is_first = [rows](int r) { return r == 0 || rows[r].mask != rows[r - 1].mask; };
  // Mostly the last token of a text sees all of it: nothing to list, and quickly found out.
  for (int r = n_rows - 1; r >= 0; --r) {
    if (!is_first(r) || rows[r].begin != begin || rows[r].end != end) continue;
    if (!has_gaps(rows[r])) return false;
  }
  std::int32_t n = 0;
  if (one_mask) {
    n = list_open(rows[0].mask, kMasked, begin, end, cells);
  } else {
    std::fill(seen + begin, seen + std::max(begin, end), std::uint16_t{0});
    for (int r = 0; r < n_rows; ++r) {
      if (!is_first(r)) continue;
      const std::uint16_t* const mask = rows[r].mask;
      for (int c = rows[r].begin; c < rows[r].end; ++c) seen[c] |= mask[c] ^ kMasked;
    }
    n = list_open(seen, 0, begin, end, cells);
    if (n >= end - begin) return false;
  }
  for (int r = 0; r < n_rows; ++r) {
    const auto place = [&](int cell) {
      return static_cast<int>(std::lower_bound(cells, cells + n, cell) - cells);
    };
    rows[r].begin = place(rows[r].begin);
    rows[r].end = place(rows[r].end);
  }
  return true;
}

// Null, or a value for each cell; tokens, heads and streams beyond it begin again.
bool is_taken_mask(const ggml_tensor* mask, std::int64_t n_cells) {
  return mask == nullptr || (mask->type == GGML_TYPE_F16 && mask->nb[0] == sizeof kMasked &&
                             mask->ne[0] >= n_cells && !ggml_is_empty(mask));
}

// Null, or a value for each head of the queries, one behind the other.
bool is_taken_sinks(const ggml_tensor* sinks, std::int64_t n_heads) {
  return sinks == nullptr ||
         (sinks->type == GGML_TYPE_F32 && sinks->nb[0] == sizeof(float) && sinks->ne[0] >= n_heads);
}

// A row of values for each head of each token of each stream, as ggml lays them: what a worker's
// peer asks for must not be written beyond its memory.
bool is_taken_output(const ggml_tensor* op) {
  const ggml_tensor* q = op->src[0];
  return op->type == GGML_TYPE_F32 && op->nb[0] == sizeof(float) && op->nb[0] <= op->nb[1] &&
         op->nb[1] <= op->nb[2] && op->nb[2] <= op->nb[3] && op->ne[0] == op->src[2]->ne[0] &&
         op->ne[1] == q->ne[2] && op->ne[2] == q->ne[1] && op->ne[3] == q->ne[3];
}

float parameter(const ggml_tensor* op, int i) {
  float value = 0.0F;
  std::memcpy(&value, reinterpret_cast<const char*>(op->op_params) + sizeof(float) * i,
              sizeof value);
  return value;
}

}  // namespace

bool kernel_attention_takes(const ggml_tensor* op) {
  if (op->op != GGML_OP_FLASH_ATTN_EXT) return false;
  const ggml_tensor* q = op->src[0];
  const ggml_tensor* k = op->src[1];
  const ggml_tensor* v = op->src[2];
  // A graph is planned with those that compute nothing, too.
  if (ggml_is_empty(q) || ggml_is_empty(k) || ggml_is_empty(v)) return false;
  const float max_bias = parameter(op, 1);
  const float soft_cap = parameter(op, 2);
  return max_bias == 0.0F && soft_cap == 0.0F && q->type == GGML_TYPE_F32 &&
         q->nb[0] == sizeof(float) && is_taken_cache(k) && is_taken_cache(v) &&
         k->ne[0] == q->ne[0] && v->ne[1] == k->ne[1] && v->ne[2] == k->ne[2] &&
         v->ne[3] == k->ne[3] && q->ne[2] % k->ne[2] == 0 && q->ne[3] % k->ne[3] == 0 &&
         is_taken_mask(op->src[3], k->ne[1]) && is_taken_sinks(op->src[4], q->ne[2]) &&
         is_taken_output(op);
}

AttentionPieces::AttentionPieces(const ggml_tensor* op, int nth)
    : op_(op),
      n_streams_(op->src[0]->ne[3]),
      n_key_heads_(op->src[1]->ne[2]),
      n_tokens_(op->src[0]->ne[1]),
      n_heads_(op->src[0]->ne[2] / n_key_heads_),
      n_splits_(1) {
  const std::int64_t n_cells = std::max<std::int64_t>(op->src[1]->ne[1], 1);
  const std::int64_t most_rows = std::min(kMostRows, kMostScores / n_cells);
  block_tokens_ =
      std::clamp<std::int64_t>(most_rows / n_heads_, 1, std::max<std::int64_t>(n_tokens_, 1));
  // Each thread should have one; what is cut is read by several.
  const std::int64_t heads = n_streams_ * n_key_heads_;
  while (block_tokens_ > 1 && heads * ((n_tokens_ + block_tokens_ - 1) / block_tokens_) < nth) {
    block_tokens_ = (block_tokens_ + 1) / 2;
  }
  n_blocks_ = (n_tokens_ + block_tokens_ - 1) / block_tokens_;
  if (heads * n_blocks_ < nth) {
    n_splits_ = n_heads_;
    n_heads_ = 1;
  }
}

std::size_t AttentionPieces::scratch_bytes() const {
  const auto n_rows = static_cast<int>(block_tokens_ * n_heads_);
  const std::size_t floats = kernels::attention_scratch(
      n_rows, static_cast<int>(op_->src[1]->ne[0]), static_cast<int>(op_->src[2]->ne[0]),
      static_cast<int>(op_->src[1]->ne[1]));
  return GGML_PAD(floats * sizeof(float), 64) +
         GGML_PAD(static_cast<std::size_t>(n_rows) * sizeof(QueryRow), 64) + seen_bytes() +
         list_bytes();
}

std::size_t AttentionPieces::seen_bytes() const {
  return GGML_PAD(static_cast<std::size_t>(op_->src[1]->ne[1]) * sizeof(std::uint16_t), 64);
}

std::size_t AttentionPieces::list_bytes() const {
  return GGML_PAD(static_cast<std::size_t>(op_->src[1]->ne[1]) * sizeof(std::int32_t), 64);
}

QueryRow AttentionPieces::query_row(std::int64_t token, std::int64_t head, std::int64_t stream,
                                    const QueryRow* before) const {
  const ggml_tensor* mask = op_->src[3];
  const ggml_tensor* sinks = op_->src[4];
  QueryRow row;
  row.query = at<const float>(op_->src[0], token, head, stream);
  row.out = at<float>(op_, head, token, stream);
  row.end = static_cast<int>(op_->src[1]->ne[1]);
  if (mask != nullptr) {
    row.mask = at<const std::uint16_t>(mask, token, head, stream);
    if (before != nullptr && before->mask == row.mask) {
      row.begin = before->begin;
      row.end = before->end;
    } else {
      find_range(row.mask, &row);
    }
  }
  if (sinks != nullptr) {
    row.has_sink = true;
    row.sink = static_cast<const float*>(sinks->data)[head];
  }
  return row;
}

void AttentionPieces::run(const kernels::InstructionSet& set, std::int64_t piece,
                          std::uint8_t* scratch) const {
  const std::int64_t block = piece % n_blocks_;
  const std::int64_t first_head = piece / n_blocks_ % (n_key_heads_ * n_splits_) * n_heads_;
  const std::int64_t stream = piece / n_blocks_ / (n_key_heads_ * n_splits_);
  const std::int64_t first = block * block_tokens_;
  const std::int64_t n_tokens = std::min(block_tokens_, n_tokens_ - first);

  auto* rows = reinterpret_cast<QueryRow*>(scratch);
  const auto n_rows = static_cast<int>(n_tokens * n_heads_);
  scratch += GGML_PAD(static_cast<std::size_t>(block_tokens_ * n_heads_) * sizeof(QueryRow), 64);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    rows[i] = query_row(first + i / n_heads_, first_head + i % n_heads_, stream,
                        i > 0 ? &rows[i - 1] : nullptr);
  }
  auto* const seen = reinterpret_cast<std::uint16_t*>(scratch);
  scratch += seen_bytes();
  auto* const cells = reinterpret_cast<std::int32_t*>(scratch);
  scratch += list_bytes();
  kernels::Attention call{.keys = cache_head(op_, op_->src[1], first_head, stream),
                          .values = cache_head(op_, op_->src[2], first_head, stream),
                          .scale = parameter(op_, 0)};
  // Text by text: the cells of several lie between each other, and none sees another's.
  for (int next = 0; next < n_rows;) {
    call.rows = rows + next;
    call.n_rows = 1;
    while (next + call.n_rows < n_rows && shares_cells(*call.rows, call.rows[call.n_rows])) {
      ++call.n_rows;
    }
    call.cells = list_cells(rows + next, call.n_rows, seen, cells) ? cells : nullptr;
    kernels::attend(set, call, reinterpret_cast<float*>(scratch));
    next += call.n_rows;
  }
}

}  // namespace outrider::llama
