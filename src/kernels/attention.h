// Attention of some rows of queries over the cells of one head of keys and values, as softmax(q K)
// V in floats.
//
// What a row becomes depends on nothing but its query and the cells that it sees, in their order:
// not on the other rows, on cells that it does not see, or on where its cells lie. A score is
// computed dimension by dimension, the largest score is known before the first is exponentiated,
// and the sums over cells go from cell to cell. All instruction sets give the same bits.
//
// Tested by attention_test.cc against a plain loop over the cells.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/weight_type.h"

namespace outrider::kernels {

// Sizes of heads that InstructionSet::attend takes, of keys and of values.
inline constexpr int kMaxHeadSize = 1024;

// Cells of one head of a cache: kF32, kF16, kBf16 or kQ80, [size] at `bytes` + cell * `stride`.
struct CacheHead {
  WeightType type = WeightType::kF16;
  const std::uint8_t* bytes = nullptr;
  std::size_t stride = 0;
  int size = 0;  // 1 to kMaxHeadSize; for kQ80 a multiple of 32
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
};

struct Attention {
  CacheHead keys;
  CacheHead values;
  float scale = 1.0F;  // of the products of queries and keys
  // The cells to go through, rising: those that no row sees need not be read. Null: all, in order.
  const std::int32_t* cells = nullptr;
  const QueryRow* rows = nullptr;
  int n_rows = 0;
};

// Floats that InstructionSet::attend needs for scratch, for rows that together see a range of
// `n_cells` places; aligned to 64 bytes.
constexpr std::size_t attention_scratch(int n_rows, int key_size, int value_size, int n_cells) {
  constexpr auto kPad = [](int n) { return static_cast<std::size_t>(n + 63) / 64 * 64; };
  const auto rows = static_cast<std::size_t>(n_rows);
  const std::size_t head = kPad(key_size > value_size ? key_size : value_size);
  return rows * (kPad(key_size) + kPad(value_size) + kPad(n_cells + 32) + 64) + 3 * 32 * head;
}

}  // namespace outrider::kernels
