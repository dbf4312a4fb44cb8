#include "kernels/block.h"

#include <algorithm>
#include <cassert>

namespace outrider::kernels {
namespace {

// 16 bytes of nibbles: weights 0 to 15 below, 16 to 31 above.
void nibbles_of_32(const std::uint8_t* bytes, std::uint8_t* values) {
  for (int i = 0; i < 16; ++i) {
    values[i] = bytes[i] & 15U;
    values[i + 16] = bytes[i] >> 4;
  }
}

// The fifth bits of 32 weights: one little-endian word.
void add_fifth_bits(const std::uint8_t* word, std::uint8_t* values) {
  for (int i = 0; i < 32; ++i) {
    values[i] = static_cast<std::uint8_t>(values[i] | ((word[i / 8] >> (i % 8)) & 1U) << 4);
  }
}

// The K types' nibbles: of each 64 weights the first 32 below, the others above.
void nibbles_of_256(const std::uint8_t* bytes, std::uint8_t* values) {
  for (int i = 0; i < 256; ++i) {
    const std::uint8_t byte = bytes[i / 64 * 32 + i % 32];
    values[i] = i % 64 < 32 ? byte & 15U : byte >> 4;
  }
}

// Q4_K's and Q5_K's 12 bytes: eight scales and eight minimums of six bits.
void scales_and_minimums(const std::uint8_t* bytes, std::uint8_t* header) {
  for (int i = 0; i < 4; ++i) {
    header[i] = bytes[i] & 63U;
    header[8 + i] = bytes[4 + i] & 63U;
    header[4 + i] = static_cast<std::uint8_t>((bytes[8 + i] & 15U) | (bytes[i] >> 6) << 4);
    header[12 + i] = static_cast<std::uint8_t>((bytes[8 + i] >> 4) | (bytes[4 + i] >> 6) << 4);
  }
}

void read_q4k_or_q5k(bool fifth_bits, const std::uint8_t* bytes, Block* block) {
  std::copy_n(bytes, 4, block->header.begin());
  scales_and_minimums(bytes + 4, block->header.data() + 4);
  const std::uint8_t* high = bytes + 16;
  nibbles_of_256(fifth_bits ? high + 32 : high, block->values.data());
  if (!fifth_bits) return;
  for (int i = 0; i < 256; ++i) {
    const unsigned bit = (high[i % 32] >> (i / 32)) & 1U;
    block->values[i] = static_cast<std::uint8_t>(block->values[i] | bit << 4);
  }
}

// Of each 128 weights: 64 bytes of nibbles, 32 bytes of four times two high bits.
void read_q6k(const std::uint8_t* bytes, Block* block) {
  const std::uint8_t* low = bytes;
  const std::uint8_t* high = bytes + 128;
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int quarter = i % 128 / 32;
    const int column = i % 32;
    const std::uint8_t byte = low[64 * half + 32 * (quarter % 2) + column];
    const unsigned nibble = quarter < 2 ? byte & 15U : byte >> 4;
    const unsigned top = (high[32 * half + column] >> (2 * quarter)) & 3U;
    block->values[i] = static_cast<std::uint8_t>(nibble | top << 4);
  }
  std::copy_n(bytes + 208, 2, block->header.begin());
  std::copy_n(bytes + 192, 16, block->header.begin() + 2);
}

// Two bits of each weight: of each 128 the quarters lie above each other.
unsigned two_bits(const std::uint8_t* bytes, int i) {
  return (bytes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3U;
}

// The file packs the 16 scales as the header does: eight bytes of nibbles, four of high bits.
void read_q3k(const std::uint8_t* bytes, Block* block) {
  for (int i = 0; i < 256; ++i) {
    const unsigned high = (bytes[i % 32] >> (i / 32)) & 1U;
    block->values[i] = static_cast<std::uint8_t>(two_bits(bytes + 32, i) | high << 2);
  }
  std::copy_n(bytes + 108, 2, block->header.begin());
  std::copy_n(bytes + 96, 12, block->header.begin() + 2);
}

void read_q2k(const std::uint8_t* bytes, Block* block) {
  for (int i = 0; i < 256; ++i) {
    block->values[i] = static_cast<std::uint8_t>(two_bits(bytes + 16, i));
  }
  std::copy_n(bytes + 80, 4, block->header.begin());
  std::copy_n(bytes, 16, block->header.begin() + 4);
}

void read_iq4xs(const std::uint8_t* bytes, Block* block) {
  std::copy_n(bytes, 2, block->header.begin());
  const unsigned high = bytes[2] | static_cast<unsigned>(bytes[3]) << 8;
  for (int i = 0; i < 8; ++i) {
    const unsigned low = (bytes[4 + i / 2] >> (4 * (i % 2))) & 15U;
    const unsigned scale = low | ((high >> (2 * i)) & 3U) << 4;
    block->header[2 + i] = static_cast<std::uint8_t>(scale - 32U);
    nibbles_of_32(bytes + 8 + 16 * i, block->values.data() + 32 * i);
  }
}

}  // namespace

void read_block(WeightType type, const std::uint8_t* bytes, Block* block) {
  const auto header = static_cast<std::size_t>(weight_format(type).header_bytes);
  switch (type) {
    case WeightType::kQ40:
    case WeightType::kQ41:
    case WeightType::kIq4Nl:
    case WeightType::kMxfp4:
      std::copy_n(bytes, header, block->header.begin());
      return nibbles_of_32(bytes + header, block->values.data());
    case WeightType::kQ50:
    case WeightType::kQ51:
      std::copy_n(bytes, header, block->header.begin());
      nibbles_of_32(bytes + header + 4, block->values.data());
      return add_fifth_bits(bytes + header, block->values.data());
    case WeightType::kQ80:
      std::copy_n(bytes, header, block->header.begin());
      std::copy_n(bytes + header, 32, block->values.begin());
      return;
    case WeightType::kQ4K:
      return read_q4k_or_q5k(false, bytes, block);
    case WeightType::kQ5K:
      return read_q4k_or_q5k(true, bytes, block);
    case WeightType::kQ6K:
      return read_q6k(bytes, block);
    case WeightType::kQ3K:
      return read_q3k(bytes, block);
    case WeightType::kQ2K:
      return read_q2k(bytes, block);
    case WeightType::kIq4Xs:
      return read_iq4xs(bytes, block);
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBf16:
      assert(false && "float types have no blocks");
      return;
  }
}

}  // namespace outrider::kernels
