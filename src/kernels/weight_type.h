// The weight types that the kernels multiply with, and what a block of each consists of.
//
// A block is what a GGUF file stores for 1, 32 or 256 consecutive weights of a row. Except for the
// three float types a weight is scale * (value - zero) - minimum, with a small unsigned value. The
// scale and the minimum belong to a group of 32 or 16 weights.
//
//   type      values  weights  header of a block                        group
//   Q4_0      4 bits    32     half d; zero 8                           32
//   Q4_1      4 bits    32     half d, half minimum                     32
//   Q5_0      5 bits    32     half d; zero 16                          32
//   Q5_1      5 bits    32     half d, half minimum                     32
//   Q8_0      8 bits    32     half d; signed                           32
//   IQ4_NL    4 bits    32     half d; values are looked up, signed     32
//   MXFP4     4 bits    32     power of two; values are looked up       32
//   Q4_K      4 bits   256     half d, half m, 8 scales, 8 minimums     32
//   Q5_K      5 bits   256     half d, half m, 8 scales, 8 minimums     32
//   IQ4_XS    4 bits   256     half d, 8 scales; looked up, signed      32
//   Q6_K      6 bits   256     half d, 16 signed scales; zero 32        16
//   Q3_K      3 bits   256     half d, 16 scales of 6 bits; zero 4      16
//   Q2_K      2 bits   256     half d, half m, 16 scales with minimums  16
//
// A further type is an enumerator, and
//  - its row in kFormats, and where its halves lie in half_fields() (weight_type.cc);
//  - read_block() (block.cc), which takes a file's block apart; what it packs into follows from the
//    row's `values`, `group`, `zero`, `has_minimum`, `halves` and `header_bytes` (packed.cc);
//  - how a packed strip is read: ValueReader and HeaderReader (strip_readers.h), of floats
//    FloatReader (strip_floats.h), and its line in SetTable (set_table.h);
//  - the reference that tests compare with: block_value(), block_scale() and block_minimum()
//    (testing/kernel_reference.cc).
// All other code asks the row, or goes through all types (kWeightTypes): which tensors the kernels
// take is asked by the name. What holds of ggml's own kernels for it, which are taken where ours
// are off, is in the lists at the head of src/llama/exactness/exactness_rule.cc; which types a made
// draft may have, in kFileTypes (src/llama/gguf/draft_writer.cc). Types of a cache's cells are
// fewer: cache_type() in src/llama/kernels/attention_rows.cc.
//
// Source: the block structures of ggml (ggml-common.h) and its dequantize_row_* functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace outrider::kernels {

enum class WeightType : std::uint8_t {
  kF32,
  kF16,
  kBf16,
  kQ40,
  kQ41,
  kQ50,
  kQ51,
  kQ80,
  kQ2K,
  kQ3K,
  kQ4K,
  kQ5K,
  kQ6K,
  kIq4Nl,
  kIq4Xs,
  kMxfp4,
};
inline constexpr int kWeightTypes = static_cast<int>(WeightType::kMxfp4) + 1;  // the last one

// How the values of a block are multiplied. The names are the values' ranges.
enum class Values : std::uint8_t {
  kFloat,    // the weights themselves: 4 or 2 bytes each
  kTo15,     // 0 to 15
  kTo31,     // 0 to 31
  kTo63,     // 0 to 63
  kSigned8,  // -128 to 127
};

struct WeightFormat {
  WeightType type = WeightType::kF32;
  std::string_view name;  // ggml's: "q4_0", "q6_K", "f16"
  int block_weights = 0;  // weights of a block
  int block_bytes = 0;    // bytes of a block in a GGUF file
  Values values = Values::kFloat;
  int group = 0;             // weights that share a scale: 32, 16; 0 for the float types
  int zero = 0;              // subtracted from each value
  bool has_minimum = false;  // each group has a minimum
  int value_bits = 0;        // bits a packed value takes; 32 or 16 for the float types
  int halves = 0;            // 16-bit fields of a packed block's header, before
  int header_bytes = 0;      // its 8-bit fields; the bytes of both together
};

// Products of two values with activations are at most 2 * highest * 127: how many of those sums may
// be added to each other in 16 bits, of 8 vectors. (128 * 127 * 2 = 32,512 still fits once.)
constexpr int sums_in_16_bits(Values values) {
  return values == Values::kTo15   ? 8  // 8 * 3,810 = 30,480
         : values == Values::kTo31 ? 4  // 4 * 7,874 = 31,496
         : values == Values::kTo63 ? 2  // 2 * 16,002 = 32,004
                                   : 1;
}

// Static storage.
const WeightFormat& weight_format(WeightType type);

// Changes the block [block_bytes] of random bytes at `block` as little as makes its weights, and
// their products, finite: scales and floats below 2, zero and subnormal ones among them.
void make_finite(WeightType type, std::uint8_t* block);

// The type with ggml's name, or nothing when the kernels have none of that name.
std::optional<WeightType> weight_type(std::string_view name);

// IEEE half precision as float; exact.
float half_to_float(std::uint16_t bits);

// Weights are taken apart in groups of 32, whatever their scale's group is.
inline constexpr int kGroup = 32;

// The values that the four bits of IQ4_NL and IQ4_XS stand for, and those of MXFP4 plus 12.
inline constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr std::int8_t kMxfp4ValuesPlus12[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                       12, 11, 10, 9,  8,  6,  4,  0};

}  // namespace outrider::kernels
