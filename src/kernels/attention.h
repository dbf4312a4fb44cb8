// Attention of some rows of queries over the cells of some heads of keys and values, as softmax(q
// K) V in floats. A head's rows see that head's keys and values alone.
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

// Cells of some heads of a cache: kF32, kF16, kBf16 or kQ80, [size] at `bytes` + head *
// `head_stride` + cell * `stride`.
struct CacheHeads {
  WeightType type = WeightType::kF16;
  const std::uint8_t* bytes = nullptr;
  std::size_t stride = 0;
  int size = 0;  // 1 to kMaxHeadSize; for kQ80 a multiple of 32
  std::size_t head_stride = 0;
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
  CacheHeads keys;
  CacheHeads values;
  float scale = 1.0F;  // of the products of queries and keys
  // The cells to go through, rising: those that no row sees need not be read. Null: all, in order.
  const std::int32_t* cells = nullptr;
  const QueryRow* rows = nullptr;  // [n_rows], those of a head behind those of the one before
  int n_rows = 0;
  // Rows of a head; 0: all are of the first.
  int head_rows = 0;
  // Rows of the first head that are before rows[0], and not of this call; less than head_rows.
  int first = 0;

  int n_heads() const { return head_rows == 0 ? 1 : (first + n_rows + head_rows - 1) / head_rows; }
};

// The steps of an attention, each over before the next begins.
enum class AttentionStep {
  kScores,   // of cells, in blocks of kAttentionBlock from the first on that some row sees
  kWeights,  // of rows
  kValues,   // of dimensions, in blocks of kAttentionBlock, the last of a head not always whole
};
inline constexpr int kAttentionBlock = 32;

// Some of the blocks, or rows, of a step. Several threads may work on different ones at once.
struct AttentionPart {
  AttentionStep step = AttentionStep::kScores;
  int begin = 0;
  int end = 0;
};

// Floats, aligned to 64 bytes.
struct AttentionMemory {
  float* shared = nullptr;  // [attention_shared()], the same in all steps and for all threads
  float* own = nullptr;     // [attention_own()], of the part
};

// The range of places that some row sees.
struct SeenRange {
  int first = 0;
  int end = 0;
};
SeenRange seen_range(const Attention& call);

// How many blocks, or rows, a step has.
int attention_blocks(const Attention& call, AttentionStep step);

constexpr std::size_t attention_padded(int n) { return static_cast<std::size_t>(n + 63) / 64 * 64; }

// For rows, of all heads together, that see a range of `n_cells` places at most.
constexpr std::size_t attention_shared(int n_rows, int n_cells) {
  return static_cast<std::size_t>(n_rows) * attention_padded(n_cells + 32) +
         attention_padded(n_rows);
}
constexpr std::size_t attention_own(int n_rows, int key_size, int value_size) {
  const std::size_t head = attention_padded(key_size > value_size ? key_size : value_size);
  return static_cast<std::size_t>(n_rows) *
             (attention_padded(key_size) + attention_padded(value_size)) +
         32 * head + 32 * 32 + 64;
}

// For all of an attention on one thread: attend().
constexpr std::size_t attention_scratch(int n_rows, int key_size, int value_size, int n_cells) {
  return attention_shared(n_rows, n_cells) + attention_own(n_rows, key_size, value_size);
}

}  // namespace outrider::kernels
