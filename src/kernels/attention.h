// Attention of some rows of queries over the cells of some heads of keys and values, as softmax(q
// K) V in floats. A head's rows see that head's keys and values alone.
//
// What a row becomes depends on nothing but its query and the cells that it sees, in their order:
// not on the other rows, on cells that it does not see, or on where its cells lie. A score is
// computed dimension by dimension, the largest score is known before the first is exponentiated,
// and the sums over cells go from cell to cell. Or by parts: each has a largest score and sums of
// its own, and they are joined one after the other. All instruction sets give the same bits.
//
// Tested by attention_test.cc against a plain loop over the cells.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/weight_type.h"

namespace outrider::kernels {

// Sizes of heads that InstructionSet::attend takes, of keys and of values.
inline constexpr int kMaxHeadSize = 1024;

// Cells of some heads of a cache: kF32, kF16, kBf16 or kQ80, [size] at `bytes` + head *
// `head_stride` + cell * `stride`.
struct CacheHeads {
  WeightType type = WeightType::kF16;
  const std::uint8_t* bytes = nullptr;
  std::size_t stride = 0;
  int size = 0;  // 1 to kMaxHeadSize; for kQ80 a multiple of 32
  std::size_t head_stride = 0;
};

// What the weights of some cells are relative to, and their sum.
struct AttentionPart {
  float largest = -__builtin_huge_valf();  // score
  float divisor = 0.0F;
};

// A query, and which cells it sees: of those that the call goes through, the ones from place
// `begin` up to, not including, `end` whose mask is not minus infinity.
struct QueryRow {
  const float* query = nullptr;  // [keys.size]
  const std::uint16_t* mask =
      nullptr;  // IEEE halves that are added to the scores, by cell; or null
  int begin = 0;
  int end = 0;
  float sink = 0.0F;  // with `has_sink`: a score without a value, which takes its share
  bool has_sink = false;
  float* out = nullptr;  // [values.size]; zeros for a row that sees nothing
  // Null, or the row is to be joined with what other cells give (InstructionSet::join): `out` gets
  // the sums of weighted values, and this what they were weighted by. It has no sink then.
  AttentionPart* part = nullptr;
};

struct Attention {
  CacheHeads keys;
  CacheHeads values;
  float scale = 1.0F;  // of the products of queries and keys
  // The cells to go through, rising: those that no row sees need not be read. Null: all, in order.
  const std::int32_t* cells = nullptr;
  // Up to which place a later call goes on behind the last one that these rows see; what it begins
  // with is fetched.
  int later = 0;
  const QueryRow* rows = nullptr;  // [n_rows], those of a head behind those of the one before
  int n_rows = 0;
  // Rows of a head; 0: all are of the first.
  int head_rows = 0;
  // Rows of the first head that are before rows[0], and not of this call; less than head_rows.
  int first = 0;

  int n_heads() const { return head_rows == 0 ? 1 : (first + n_rows + head_rows - 1) / head_rows; }
};

// What the rows of a call see, all together.
struct AttentionExtent {
  int first = 0;  // the range of places that some row sees
  int end = 0;
  std::size_t stride = 0;  // floats between the scores of one row and the next
};
AttentionExtent extent_of(const Attention& call);

constexpr std::size_t attention_padded(int n) { return static_cast<std::size_t>(n + 63) / 64 * 64; }

// Floats that InstructionSet::attend needs for scratch, for rows that each have a range of at most
// `n_cells` places; aligned to 64 bytes.
constexpr std::size_t attention_scratch(int n_rows, int key_size, int value_size, int n_cells) {
  const auto rows = static_cast<std::size_t>(n_rows);
  const std::size_t head = attention_padded(key_size > value_size ? key_size : value_size);
  return rows * (attention_padded(key_size) + attention_padded(value_size) +
                 attention_padded(n_cells + 64)) +
         attention_padded(n_rows) + 32 * head + 64;
}

}  // namespace outrider::kernels
