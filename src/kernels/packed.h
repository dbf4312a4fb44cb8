// Packed weights: the rows of a matrix in strips, so that one load brings the same weights of
// several rows.
//
// A strip is R rows (8, 16 or 32: the lanes of one or two vectors of floats); the last one is
// filled up with rows of zeros. Its bytes are read once, from one end to the other: chunks of 256
// columns (the last may have fewer), each of which is
//
//   headers  of each block of a row: the 16-bit fields, [halves, R], then the 8-bit ones, [.., R];
//            filled up to a multiple of 2 * R bytes
//   values   of each group of 32 weights: its planes, each a few vectors of 4 * R bytes
//
// Byte 4 * r + e of a vector belongs to row r; vector j stands for the weights 4 * j + e, e = 0..3,
// of a group: that is what an instruction multiplies with four activations at once. Eight bits are
// eight vectors. Fewer are planes of 4, 2 or 1 bits (5 = 4 + 1, 6 = 4 + 2, 3 = 2 + 1). A plane of w
// bits is w vectors; the bits of vector j lie in its vector j * w / 8, from bit j * w % 8 on,
// so that a few shifts and masks bring eight vectors back. Float types have no headers; their
// values lie as [n_columns, R].
//
// A strip takes the bytes of its rows in the GGUF file, 2.8 % more for Q4_K, 2.3 % for Q5_K and
// 1.5 % for IQ4_XS, whose scales of six bits get a byte each, plus at most 63 bytes and what fills
// up a last chunk's headers.
//
// Tested by packed_test.cc (sizes, the last strip, strips packed apart) and product_test.cc (every
// type and odd numbers of rows, by their products).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/weight_type.h"

namespace outrider::kernels {

// Columns of a chunk.
inline constexpr std::int64_t kChunkColumns = 256;

struct PackedLayout {
  // `n_columns` is a multiple of the type's block_weights; `strip_rows` is 8, 16 or 32.
  PackedLayout(WeightType type, std::int64_t n_rows, std::int64_t n_columns, int strip_rows);

  WeightType type;
  std::int64_t n_rows;
  std::int64_t n_columns;
  int strip_rows;
  std::int64_t n_strips;
  std::size_t strip_bytes;  // a multiple of 64
  std::size_t row_bytes;    // of a row in the GGUF file

  std::size_t bytes() const { return static_cast<std::size_t>(n_strips) * strip_bytes; }
};

// Packs the strips from `begin` up to, not including, `end`. `rows` is the whole matrix as the file
// has it, [n_rows, row_bytes]; `packed` the whole packed one, [layout.bytes()], aligned to 64.
// 8-bit values are stored XOR `flip`: 0, or 128 for instructions that want unsigned values (see
// InstructionSet::flip). Strips are independent: any number of threads may pack different ones.
void pack_strips(const PackedLayout& layout, const std::uint8_t* rows, std::int64_t begin,
                 std::int64_t end, std::uint8_t flip, std::uint8_t* packed);

}  // namespace outrider::kernels
