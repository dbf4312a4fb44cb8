#include "kernels/packed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "kernels/instruction_set.h"
#include "testing/kernel_reference.h"

namespace outrider::kernels {
namespace {

// Bytes for each 256 weights: what the types gain whose scales of six bits get a byte each is all
// that a packed matrix takes more than the file, where its rows fill the strips.
TEST(Packed, EveryTypeTakesTheBytesOfTheFileButForThreeThatTakeUpToThreePerCentMore) {
  const std::map<WeightType, std::size_t> more = {
      {WeightType::kQ4K, 4}, {WeightType::kQ5K, 4}, {WeightType::kIq4Xs, 2}};
  for (int i = 0; i < kWeightTypes; ++i) {
    const auto type = static_cast<WeightType>(i);
    const WeightFormat& format = weight_format(type);
    const auto in_file = static_cast<std::size_t>(256 / format.block_weights * format.block_bytes);
    const std::size_t packed = in_file + (more.contains(type) ? more.at(type) : 0);
    EXPECT_LE(static_cast<double>(packed), 1.03 * static_cast<double>(in_file)) << format.name;
    for (const int strip_rows : {8, 16, 32}) {
      const PackedLayout layout(type, 4096, 4096, strip_rows);
      EXPECT_EQ(layout.row_bytes, 16 * in_file) << format.name;
      EXPECT_EQ(layout.bytes(), std::size_t{4096} * 16 * packed) << format.name;
      EXPECT_EQ(layout.strip_bytes % 64, 0U);
    }
  }
}

// The matrices of a model of 8 billion weights as Q4_K_M has them: most in Q4_K, half of the
// values' and of the second feed-forward ones in Q6_K, the output, too.
TEST(Packed, AModelInQ4KmTakesAtMostThreePerCentMoreThanItsFile) {
  constexpr std::int64_t kEmbd = 4096;
  constexpr std::int64_t kKeys = 1024;
  constexpr std::int64_t kForward = 14336;
  constexpr std::int64_t kTokens = 128256;
  for (const int strip_rows : {8, 16, 32}) {
    std::size_t packed = 0;
    std::size_t in_file = 0;
    const auto add = [&](WeightType type, std::int64_t n_rows, std::int64_t n_columns) {
      const PackedLayout layout(type, n_rows, n_columns, strip_rows);
      packed += layout.bytes();
      in_file += layout.row_bytes * static_cast<std::size_t>(n_rows);
    };
    for (int layer = 0; layer < 32; ++layer) {
      const WeightType finer = layer % 2 == 0 ? WeightType::kQ6K : WeightType::kQ4K;
      add(WeightType::kQ4K, kEmbd, kEmbd);     // queries
      add(WeightType::kQ4K, kKeys, kEmbd);     // keys
      add(finer, kKeys, kEmbd);                // values
      add(WeightType::kQ4K, kEmbd, kEmbd);     // output of the attention
      add(WeightType::kQ4K, kForward, kEmbd);  // gate
      add(WeightType::kQ4K, kForward, kEmbd);  // up
      add(finer, kEmbd, kForward);             // down
    }
    add(WeightType::kQ6K, kTokens, kEmbd);
    EXPECT_GT(packed, in_file);
    EXPECT_LT(static_cast<double>(packed), 1.03 * static_cast<double>(in_file));
  }
}

TEST(Packed, AnOddNumberOfRowsFillsTheLastStripWithZeros) {
  std::mt19937_64 random(3);
  const std::vector<std::uint8_t> rows = testing::random_rows(WeightType::kQ80, 9, 64, &random);
  const PackedLayout layout(WeightType::kQ80, 9, 64, 8);
  ASSERT_EQ(layout.n_strips, 2);
  std::vector<std::uint8_t> packed(layout.bytes(), 0xEE);
  pack_strips(layout, rows.data(), 0, 2, 0, packed.data());
  const std::uint8_t* second = packed.data() + layout.strip_bytes;
  const int header_bytes = 32;  // two blocks' scales, 2 * 2 * 8 bytes
  EXPECT_EQ(std::count(second, second + header_bytes, 0xEE), 0);
  // Byte 4 * r + e of each vector of 32 bytes is row r's.
  for (int vector = 0; vector < 16; ++vector) {
    const std::uint8_t* bytes = second + header_bytes + 32 * vector;
    for (int e = 0; e < 4; ++e) {
      EXPECT_EQ(bytes[e], rows[8 * layout.row_bytes + 34U * static_cast<unsigned>(vector / 8) + 2U +
                               4U * static_cast<unsigned>(vector % 8) + static_cast<unsigned>(e)]);
    }
    EXPECT_TRUE(std::all_of(bytes + 4, bytes + 32, [](std::uint8_t byte) { return byte == 0; }));
  }
}

TEST(Packed, FloatsLieColumnByColumnOfTheStrip) {
  for (const WeightType type : {WeightType::kF16, WeightType::kBf16, WeightType::kF32}) {
    const auto size = static_cast<std::size_t>(weight_format(type).block_bytes);
    for (const int strip_rows : {8, 16, 32}) {
      const auto rows_of_strip = static_cast<std::size_t>(strip_rows);
      for (const std::size_t n_columns : {1U, 63U, 64U, 65U, 130U}) {
        for (const std::size_t n_rows : {std::size_t{1}, rows_of_strip - 1, rows_of_strip + 1}) {
          const PackedLayout layout(type, static_cast<std::int64_t>(n_rows),
                                    static_cast<std::int64_t>(n_columns), strip_rows);
          std::vector<std::uint8_t> rows(n_rows * n_columns * size);
          for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint8_t>(i * 37);
          std::vector<std::uint8_t> packed(layout.bytes(), 0xEE);
          pack_strips(layout, rows.data(), 0, layout.n_strips, 0, packed.data());
          for (std::size_t r = 0; r < n_rows; ++r) {
            const std::uint8_t* strip = packed.data() + r / rows_of_strip * layout.strip_bytes;
            for (std::size_t k = 0; k < n_columns; ++k) {
              const std::uint8_t* at = strip + (k * rows_of_strip + r % rows_of_strip) * size;
              ASSERT_EQ(std::memcmp(at, rows.data() + (r * n_columns + k) * size, size), 0)
                  << r << ' ' << k << " of " << n_rows << " x " << n_columns;
            }
          }
        }
      }
    }
  }
}

TEST(Packed, PartsPackedByThemselvesAreTheWhole) {
  std::mt19937_64 random(4);
  for (int i = 0; i < kWeightTypes; ++i) {
    const auto type = static_cast<WeightType>(i);
    const std::vector<std::uint8_t> rows = testing::random_rows(type, 70, 256, &random);
    const PackedLayout layout(type, 70, 256, 16);
    std::vector<std::uint8_t> whole(layout.bytes());
    std::vector<std::uint8_t> parts(layout.bytes(), 1);
    pack_strips(layout, rows.data(), 0, layout.n_strips, 0, whole.data());
    for (std::int64_t strip = layout.n_strips; strip-- > 0;) {
      pack_strips(layout, rows.data(), strip, strip + 1, 0, parts.data());
    }
    EXPECT_EQ(whole, parts) << weight_format(type).name;
  }
}

TEST(WeightTypes, AreFoundByGgmlsNamesAndByNoOther) {
  for (int i = 0; i < kWeightTypes; ++i) {
    const auto type = static_cast<WeightType>(i);
    EXPECT_EQ(weight_type(weight_format(type).name), type);
  }
  EXPECT_FALSE(weight_type("iq2_xxs").has_value());
  EXPECT_FALSE(weight_type("").has_value());
}

TEST(InstructionSets, EndWithPlainCodeAndAreFoundByName) {
  const std::vector<const InstructionSet*>& sets = instruction_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_EQ(sets.back()->name, "scalar");
  for (const InstructionSet* set : sets) EXPECT_EQ(instruction_set(set->name), set);
  EXPECT_EQ(instruction_set("abacus"), nullptr);
}

}  // namespace
}  // namespace outrider::kernels
