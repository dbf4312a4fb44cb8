#include "llama/kernels/attention_rows.h"

#include <algorithm>
#include <cstring>

namespace outrider::llama {
namespace {

using kernels::QueryRow;
using kernels::WeightType;

constexpr std::uint16_t kMasked = 0xFC00;  // minus infinity, as an IEEE half

// Where element [0, i1, i2, i3] lies; an index beyond a dimension starts again, as ggml broadcasts.
template <class T>
T* at(const ggml_tensor* t, std::int64_t i1, std::int64_t i2, std::int64_t i3) {
  const auto part = [t](std::int64_t i, int dimension) {
    return static_cast<std::size_t>(i % t->ne[dimension]) * t->nb[dimension];
  };
  return reinterpret_cast<T*>(static_cast<char*>(t->data) + part(i1, 1) + part(i2, 2) +
                              part(i3, 3));
}

// Cells that are looked at at once, in a loop that compilers make vectors of. Each text of a step
// looks at all texts' cells in each layer.
constexpr int kBlock = 64;

// Whether one of kBlock cells is not `masked`.
bool has_open(const std::uint16_t* mask, std::uint16_t masked) {
  std::uint16_t open = 0;
  for (int c = 0; c < kBlock; ++c) open = static_cast<std::uint16_t>(open | (mask[c] ^ masked));
  return open != 0;
}

// The cells that are not masked lie in [begin, end).
void find_range(const std::uint16_t* mask, QueryRow* row) {
  while (row->begin + kBlock <= row->end && !has_open(mask + row->begin, kMasked)) {
    row->begin += kBlock;
  }
  while (row->end - kBlock >= row->begin && !has_open(mask + row->end - kBlock, kMasked)) {
    row->end -= kBlock;
  }
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

// Whether it does not see each cell of its range.
bool has_gaps(const QueryRow& row) {
  const std::uint16_t* const mask = row.mask;
  std::uint16_t gaps = 0;
  for (int c = row.begin; c < row.end && gaps == 0;) {
    for (const int to = std::min(c + 16 * kBlock, row.end); c < to; ++c) {
      gaps = static_cast<std::uint16_t>(gaps | (mask[c] == kMasked ? 1 : 0));
    }
  }
  return gaps != 0;
}

// Writes where `mask` is not `masked`, from `begin` up to `end`, to `cells`; returns how many. Four
// at a time: where texts lie between each other, most are masked.
std::int32_t list_few(const std::uint16_t* mask, std::uint16_t masked, int begin, int end,
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

// The same, of many cells.
std::int32_t list_open(const std::uint16_t* mask, std::uint16_t masked, int begin, int end,
                       std::int32_t* cells) {
  std::int32_t n = 0;
  for (int block = begin; block < end; block += kBlock) {
    const int last = std::min(block + kBlock, end);
    if (last - block == kBlock && !has_open(mask + block, masked)) continue;
    n += list_few(mask, masked, block, last, cells + n);
  }
  return n;
}

// The heads of stream `stream` from that on which head `head` of the queries looks at. `cells`: the
// keys or the values of `op`.
kernels::CacheHeads cache_heads(const ggml_tensor* op, const ggml_tensor* cells, std::int64_t head,
                                std::int64_t stream) {
  const ggml_tensor* q = op->src[0];
  const std::int64_t i2 = head / (q->ne[2] / cells->ne[2]);
  const std::int64_t i3 = stream / (q->ne[3] / cells->ne[3]);
  return {.type = *cache_type(cells),
          .bytes = at<const std::uint8_t>(cells, 0, i2, i3),
          .stride = cells->nb[1],
          .size = static_cast<int>(cells->ne[0]),
          .head_stride = cells->nb[2]};
}

// The query of a token and head. Its range has all cells that are not masked. `before`: a row whose
// range is taken where the mask is the same; or null.
QueryRow query_row(const ggml_tensor* op, std::int64_t token, std::int64_t head,
                   std::int64_t stream, const QueryRow* before) {
  const ggml_tensor* mask = op->src[3];
  const ggml_tensor* sinks = op->src[4];
  QueryRow row;
  row.query = at<const float>(op->src[0], token, head, stream);
  row.out = at<float>(op, head, token, stream);
  row.end = static_cast<int>(op->src[1]->ne[1]);
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

// Whether two rows are of one text, or of texts that have cells in common: one sees the first cell
// that the other sees.
bool shares_cells(const QueryRow& a, const QueryRow& b) {
  if (a.mask == nullptr || a.begin >= a.end || b.begin >= b.end) return true;
  return a.mask[b.begin] != kMasked || b.mask[a.begin] != kMasked;
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

}  // namespace

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

float attention_parameter(const ggml_tensor* op, int i) {
  float value = 0.0F;
  std::memcpy(&value, reinterpret_cast<const char*>(op->op_params) + sizeof(float) * i,
              sizeof value);
  return value;
}

std::int64_t TextRows::most_tokens(const ggml_tensor* op, int nth) {
  // Rows of a head for each thread that has a share of it: reading a tile of keys for 64 costs next
  // to nothing.
  constexpr std::int64_t kMostRows = 64;
  const std::int64_t heads = op->src[1]->ne[2];
  const std::int64_t threads = (nth + heads - 1) / heads;
  return std::clamp<std::int64_t>(kMostRows * threads * heads / op->src[0]->ne[2], 1,
                                  op->src[0]->ne[1]);
}

TextRows::TextRows(const ggml_tensor* op, int nth, std::uint8_t** memory)
    : op_(op),
      most_tokens_(most_tokens(op, nth)),
      share_(static_cast<int>(op->src[0]->ne[2] / op->src[1]->ne[2])) {
  const auto n_cells = static_cast<std::size_t>(op->src[1]->ne[1]);
  const auto n_tokens = static_cast<std::size_t>(most_tokens_);
  most_bounds_ = n_cells / kPartCells + 2;
  tokens_ = take<QueryRow>(memory, n_tokens);
  n_parts_ = take<std::int32_t>(memory, n_tokens);
  bounds_ = take<std::int32_t>(memory, n_tokens * most_bounds_);
  seen_ = take<std::uint16_t>(memory, n_cells);
  cells_ = take<std::int32_t>(memory, n_cells);
}

int TextRows::load(std::int64_t stream, std::int64_t first) {
  stream_ = stream;
  first_ = first;
  n_tokens_ = 0;
  const std::int64_t end = std::min(first + most_tokens_, op_->src[0]->ne[1]);
  for (std::int64_t t = first; t < end; ++t) {
    QueryRow& row = tokens_[n_tokens_];
    row = query_row(op_, t, 0, stream, n_tokens_ > 0 ? &tokens_[n_tokens_ - 1] : nullptr);
    // The cells of several texts lie between each other, and none sees another's.
    if (!shares_cells(tokens_[0], row)) break;
    ++n_tokens_;
  }
  listed_ = list_cells(tokens_, n_tokens_, seen_, cells_);
  most_parts_ = 0;
  widest_ = 0;
  for (int t = 0; t < n_tokens_; ++t) {
    cut(t, bounds_ + static_cast<std::size_t>(t) * most_bounds_);
    most_parts_ = std::max(most_parts_, n_parts_[t]);
  }
  return n_tokens_;
}

// Where a token's parts begin and end.
void TextRows::cut(int token, std::int32_t* bounds) {
  const QueryRow& row = tokens_[token];
  int n = 0;
  bounds[0] = row.begin;
  if (row.mask == nullptr) {
    for (int c = row.begin + kPartCells; c < row.end; c += kPartCells) bounds[++n] = c;
  } else {
    const auto count = [&](int from, int to) {
      if (listed_ && n_tokens_ == 1) return to - from;  // the list is of what it sees
      int seen = 0;
      if (listed_) {
        for (int c = from; c < to; ++c) seen += row.mask[cells_[c]] != kMasked ? 1 : 0;
      } else {
        for (int c = from; c < to; ++c) seen += row.mask[c] != kMasked ? 1 : 0;
      }
      return seen;
    };
    int left = kPartCells;
    for (int c = row.begin; c < row.end;) {
      // A part ends where its last cell is followed by another that the row sees.
      const int to = std::min(c + std::max(left, 1), row.end);
      const int seen = count(c, to);
      if (left == 0 && seen > 0) {
        bounds[++n] = c;
        left = kPartCells;
        continue;
      }
      left -= seen;
      c = to;
    }
  }
  bounds[++n] = row.end;
  n_parts_[token] = n;
  for (int part = 0; part < n; ++part) {
    widest_ = std::max(widest_, bounds[part + 1] - bounds[part]);
  }
}

QueryRow TextRows::row(int row) const {
  const int token = token_of(row);
  const int head = row / head_rows() * share_ + row % share_;
  return query_row(op_, first_ + token, head, stream_, &tokens_[token]);
}

void TextRows::set_part(int token, int part, float* sums, kernels::AttentionPart* to,
                        QueryRow* row) const {
  const std::int32_t* bounds = bounds_ + static_cast<std::size_t>(token) * most_bounds_;
  row->begin = part < n_parts_[token] ? bounds[part] : 0;
  row->end = part < n_parts_[token] ? bounds[part + 1] : 0;
  if (n_parts_[token] == 1 && part == 0) return;
  row->has_sink = false;
  row->out = sums;
  row->part = to;
}

kernels::Attention TextRows::call(int first, const QueryRow* rows, int n_rows) const {
  int later = 0;
  for (int t = 0; t < n_tokens_; ++t) later = std::max(later, tokens_[t].end);
  const int head = first / head_rows() * share_;
  return {.keys = cache_heads(op_, op_->src[1], head, stream_),
          .values = cache_heads(op_, op_->src[2], head, stream_),
          .scale = attention_parameter(op_, 0),
          .cells = listed_ ? cells_ : nullptr,
          .later = later,
          .rows = rows,
          .n_rows = n_rows,
          .head_rows = head_rows(),
          .first = first % head_rows()};
}

}  // namespace outrider::llama
