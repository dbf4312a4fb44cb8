// Every instruction set that this machine has gives the reference's bits, whatever the number of
// activation rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/instruction_set.h"
#include "kernels/packed.h"
#include "testing/kernel_reference.h"

namespace outrider::kernels {
namespace {

using testing::random_rows;
using testing::reference_activations;
using testing::reference_product;
using testing::reference_row;
using testing::ReferenceActivations;
using testing::ReferenceRow;

// Aligned as packed weights must be.
class PackedBytes {
 public:
  explicit PackedBytes(std::size_t size) : bytes_(size + 64) {}
  std::uint8_t* data() {
    void* at = bytes_.data();
    std::size_t space = bytes_.size();
    return static_cast<std::uint8_t*>(std::align(64, bytes_.size() - 64, at, space));
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

std::vector<float> random_activations(std::size_t count, std::mt19937_64* random) {
  std::normal_distribution<float> normal;
  std::vector<float> x(count);
  for (float& value : x) value = normal(*random);
  // A group with one large value, a group of zeros, and one of tiny values.
  if (count >= 96) {
    x[5] = 1000.0F;
    std::fill_n(x.begin() + 32, 32, 0.0F);
    std::fill_n(x.begin() + 64, 32, 1e-38F);
  }
  return x;
}

// The rows of activations as a set takes them.
class Operand {
 public:
  Operand(const InstructionSet& set, WeightType type, const std::vector<std::vector<float>>& rows)
      : is_float_(weight_format(type).values == Values::kFloat), n_columns_(rows[0].size()) {
    for (const std::vector<float>& row : rows) {
      floats_.insert(floats_.end(), row.begin(), row.end());
      if (is_float_) continue;
      groups_.resize(groups_.size() + n_columns_ / 32);
      set.quantise(row.data(), static_cast<std::int64_t>(n_columns_ / 32), set.offset_rule(type),
                   groups_.data() + groups_.size() - n_columns_ / 32);
    }
  }
  std::size_t stride() const {
    return is_float_ ? n_columns_ * sizeof(float) : n_columns_ / 32 * sizeof(ActivationGroup);
  }
  const void* from(int row) const {
    const void* base = is_float_ ? static_cast<const void*>(floats_.data()) : groups_.data();
    return static_cast<const std::uint8_t*>(base) + static_cast<std::size_t>(row) * stride();
  }

 private:
  bool is_float_;
  std::size_t n_columns_;
  std::vector<float> floats_;
  std::vector<ActivationGroup> groups_;
};

class Product : public ::testing::TestWithParam<std::tuple<const InstructionSet*, int>> {
 protected:
  const InstructionSet& set() const { return *std::get<0>(GetParam()); }
  WeightType type() const { return static_cast<WeightType>(std::get<1>(GetParam())); }
};

TEST_P(Product, HasTheReferencesBitsForOneToThirtyTwoRowsAndMore) {
  std::mt19937_64 random(7);
  constexpr int kMost = 40;
  const int block = weight_format(type()).block_weights;
  // One block; several chunks with a shorter last one where blocks allow it; odd numbers of rows.
  for (const auto& [n_rows, n_columns] :
       {std::pair<int, int>{1, std::max(block, 32)}, {37, block == 256 ? 768 : 608}}) {
    const std::vector<std::uint8_t> bytes = random_rows(type(), n_rows, n_columns, &random);
    const PackedLayout layout(type(), n_rows, n_columns, set().strip_rows);
    PackedBytes packed(layout.bytes());
    pack_strips(layout, bytes.data(), 0, layout.n_strips, set().flip, packed.data());

    std::vector<std::vector<float>> x;
    for (int i = 0; i < kMost; ++i) {
      x.push_back(random_activations(static_cast<std::size_t>(n_columns), &random));
    }
    std::vector<std::vector<float>> expected(kMost);
    for (int i = 0; i < kMost; ++i) {
      const ReferenceActivations activations =
          reference_activations(x[static_cast<std::size_t>(i)]);
      for (int r = 0; r < n_rows; ++r) {
        const ReferenceRow row = reference_row(
            type(), bytes.data() + static_cast<std::size_t>(r) * layout.row_bytes, n_columns);
        expected[static_cast<std::size_t>(i)].push_back(
            reference_product(row, x[static_cast<std::size_t>(i)], activations));
      }
    }
    const Operand operand(set(), type(), x);
    for (int n = 1; n <= kMost; ++n) {
      const int first = n % 3 == 0 ? kMost - n : 0;  // some at another place
      std::vector<float> out(static_cast<std::size_t>(n * set().strip_rows));
      for (std::int64_t strip = 0; strip < layout.n_strips; ++strip) {
        const std::uint8_t* at =
            packed.data() + static_cast<std::size_t>(strip) * layout.strip_bytes;
        set().multiply[static_cast<std::size_t>(type())](at, n_columns, operand.from(first),
                                                         operand.stride(), n, out.data());
        for (int i = 0; i < n; ++i) {
          for (int r = 0; r < set().strip_rows; ++r) {
            const std::int64_t row = strip * set().strip_rows + r;
            if (row >= n_rows) break;
            const float got = out[static_cast<std::size_t>(i * set().strip_rows + r)];
            const float want =
                expected[static_cast<std::size_t>(first + i)][static_cast<std::size_t>(row)];
            ASSERT_EQ(std::memcmp(&got, &want, sizeof got), 0)
                << got << " instead of " << want << " in row " << row << ", " << i << " of " << n
                << " activation rows, " << n_columns << " columns";
          }
        }
      }
    }
  }
}

std::vector<std::tuple<const InstructionSet*, int>> all_sets_and_types() {
  std::vector<std::tuple<const InstructionSet*, int>> all;
  for (const InstructionSet* set : instruction_sets()) {
    for (int type = 0; type < kWeightTypes; ++type) all.emplace_back(set, type);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    EverySetAndType, Product, ::testing::ValuesIn(all_sets_and_types()),
    [](const ::testing::TestParamInfo<std::tuple<const InstructionSet*, int>>& test) {
      std::string name(std::get<0>(test.param)->name);
      name += "_";
      name += weight_format(static_cast<WeightType>(std::get<1>(test.param))).name;
      for (char& c : name) c = c == '-' ? '_' : c;
      return name;
    });

TEST(Quantise, RoundsAsTheReferenceInEverySet) {
  std::mt19937_64 random(11);
  for (const InstructionSet* set : instruction_sets()) {
    for (int round = 0; round < 200; ++round) {
      std::vector<float> x = random_activations(96, &random);
      if (round % 2 == 0) {  // halves between two values, and the largest value itself
        for (std::size_t i = 0; i < 32; ++i) x[i] = (static_cast<float>(i) - 16.0F) / 2.0F;
        x[0] = 127.0F;
      }
      const ReferenceActivations expected = reference_activations(x);
      std::vector<ActivationGroup> groups(3);
      set->quantise(x.data(), 3, {.group = 16, .zero = 32}, groups.data());
      for (std::size_t g = 0; g < 3; ++g) {
        EXPECT_EQ(groups[g].scale, expected.scale[g]) << set->name;
        for (std::size_t half = 0; half < 2; ++half) {
          int total = 0;
          for (std::size_t i = 16 * half; i < 16 * half + 16; ++i) {
            ASSERT_EQ(groups[g].value[i], expected.value[32 * g + i]) << set->name << " " << i;
            total += groups[g].value[i];
          }
          EXPECT_EQ(groups[g].offset[half], -32 * total);
        }
      }
    }
  }
}

TEST(Quantise, WhatIsNotFiniteReachesTheScaleAndIsNoWrongNumber) {
  for (const InstructionSet* set : instruction_sets()) {
    for (const float bad : {std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), std::nanf("")}) {
      std::vector<float> x(32, 1.0F);
      x[7] = bad;
      ActivationGroup group;
      set->quantise(x.data(), 1, {}, &group);
      EXPECT_FALSE(std::isfinite(group.scale)) << set->name;
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
