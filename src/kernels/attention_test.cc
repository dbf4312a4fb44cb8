// Attention equals a plain loop in double precision to a few units in the last place of a float,
// has the same bits from every instruction set, and a row's bits depend on nothing but its query
// and the cells that it sees.
#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/instruction_set.h"
#include "testing/attention_cells.h"
#include "testing/attention_queries.h"
#include "testing/every_set.h"

namespace outrider::kernels {
namespace {

using testing::AttentionCells;
using testing::kMasked;
using testing::Queries;

// Rows `from` to `from` + n - 1 in one call.
std::vector<std::vector<float>> attend(const InstructionSet& set, const AttentionCells& keys,
                                       const AttentionCells& values, const Queries& queries,
                                       int from, int n, bool sinks = false) {
  std::vector<std::vector<float>> out(static_cast<std::size_t>(n));
  std::vector<QueryRow> rows;
  int n_cells = 0;
  for (int i = 0; i < n; ++i) {
    const auto r = static_cast<std::size_t>(from + i);
    auto& to = out[static_cast<std::size_t>(i)];
    to.assign(static_cast<std::size_t>(values.head().size), -1.0F);
    n_cells = static_cast<int>(queries.mask[r].size());
    rows.push_back({.query = queries.query[r].data(),
                    .mask = queries.mask[r].data(),
                    .begin = 0,
                    .end = n_cells,
                    .sink = 0.5F,
                    .has_sink = sinks,
                    .out = to.data()});
  }
  std::vector<float> scratch(attention_scratch(n, keys.head().size, values.head().size, n_cells));
  set.attend({.keys = keys.head(),
              .values = values.head(),
              .scale = 0.125F,
              .rows = rows.data(),
              .n_rows = n},
             scratch.data());
  return out;
}

std::vector<double> plain_loop(const AttentionCells& keys, const AttentionCells& values,
                               const std::vector<float>& query,
                               const std::vector<std::uint16_t>& mask, bool sinks) {
  std::vector<double> out(static_cast<std::size_t>(values.head().size));
  double sum = sinks ? std::exp(0.5) : 0.0;
  for (std::size_t c = 0; c < mask.size(); ++c) {
    if (mask[c] == kMasked) continue;
    const std::vector<double> key = keys.at(static_cast<int>(c));
    double score = 0.0;
    for (std::size_t d = 0; d < key.size(); ++d) score += query[d] * key[d];
    const double weight = std::exp(score * 0.125 + half_to_float(mask[c]));
    sum += weight;
    const std::vector<double> value = values.at(static_cast<int>(c));
    for (std::size_t d = 0; d < value.size(); ++d) out[d] += weight * value[d];
  }
  for (double& x : out) x = sum == 0.0 ? 0.0 : x / sum;
  return out;
}

class AttentionTest : public ::testing::TestWithParam<const InstructionSet*> {
 protected:
  const InstructionSet& set() const { return *GetParam(); }
  std::mt19937_64 random_{17};
};

TEST_P(AttentionTest, IsThePlainLoopAndHasTheScalarCodesBits) {
  const InstructionSet& scalar = *instruction_sets().back();
  using enum WeightType;
  for (const WeightType key_type : {kF32, kF16, kBf16, kQ80}) {
    for (const WeightType value_type : {kF32, kF16, kBf16, kQ80}) {
      for (const int n_cells : {1, 31, 32, 33, 200}) {
        const int key_size = key_type == kQ80 ? 96 : 80;
        const int value_size = value_type == kQ80 ? 64 : 72;
        const AttentionCells keys(key_type, n_cells, key_size, &random_);
        const AttentionCells values(value_type, n_cells, value_size, &random_);
        const Queries queries(7, key_size, n_cells, &random_);
        for (const bool sinks : {false, true}) {
          const auto got = attend(set(), keys, values, queries, 0, 7, sinks);
          EXPECT_EQ(got, attend(scalar, keys, values, queries, 0, 7, sinks));
          for (std::size_t r = 0; r < got.size(); ++r) {
            const std::vector<double> want =
                plain_loop(keys, values, queries.query[r], queries.mask[r], sinks);
            for (std::size_t d = 0; d < want.size(); ++d) {
              ASSERT_NEAR(got[r][d], want[d], 2e-6 * (1.0 + std::fabs(want[d])))
                  << "row " << r << ", " << n_cells << " cells";
            }
          }
        }
      }
    }
  }
}

TEST_P(AttentionTest, ARowHasTheSameBitsInAnyCompany) {
  const int n_cells = 150;
  const AttentionCells keys(WeightType::kF16, n_cells, 64, &random_);
  const AttentionCells values(WeightType::kF16, n_cells, 64, &random_);
  const Queries queries(21, 64, n_cells, &random_);
  std::vector<std::vector<float>> alone;
  for (int r = 0; r < 21; ++r) alone.push_back(attend(set(), keys, values, queries, r, 1)[0]);
  for (int n = 2; n <= 21; ++n) {
    const auto together = attend(set(), keys, values, queries, 21 - n, n);
    for (int i = 0; i < n; ++i) {
      ASSERT_EQ(together[static_cast<std::size_t>(i)], alone[static_cast<std::size_t>(21 - n + i)])
          << n << " rows, row " << i;
    }
  }
}

TEST_P(AttentionTest, WhereTheCellsLieDoesNotMatterOnlyTheirOrder) {
  const int n_cells = 90;
  const AttentionCells keys(WeightType::kBf16, n_cells, 64, &random_);
  const AttentionCells values(WeightType::kF16, n_cells, 64, &random_);
  Queries queries(3, 64, n_cells, &random_);
  for (auto& mask : queries.mask) mask = queries.mask[0];
  const auto want = attend(set(), keys, values, queries, 0, 3);
  for (int round = 0; round < 20; ++round) {
    // The cells in their order, with others between them that nobody sees.
    const int n_wide = 300;
    AttentionCells wide_keys(WeightType::kBf16, n_wide, 64, &random_);
    AttentionCells wide_values(WeightType::kF16, n_wide, 64, &random_);
    Queries moved = queries;
    std::vector<std::uint16_t> mask(static_cast<std::size_t>(n_wide), kMasked);
    std::vector<int> places(static_cast<std::size_t>(n_wide));
    for (int i = 0; i < n_wide; ++i) places[static_cast<std::size_t>(i)] = i;
    std::shuffle(places.begin(), places.end(), random_);
    std::sort(places.begin(), places.begin() + n_cells);
    for (int c = 0; c < n_cells; ++c) {
      const int place = places[static_cast<std::size_t>(c)];
      wide_keys.copy_cell(keys, c, place);
      wide_values.copy_cell(values, c, place);
      mask[static_cast<std::size_t>(place)] = queries.mask[0][static_cast<std::size_t>(c)];
    }
    for (int i = n_cells; i < n_wide; i += 2) {
      wide_keys.break_cell(places[static_cast<std::size_t>(i)]);
      wide_values.break_cell(places[static_cast<std::size_t>(i)]);
    }
    for (auto& row : moved.mask) row = mask;
    ASSERT_EQ(attend(set(), wide_keys, wide_values, moved, 0, 3), want) << "round " << round;
  }
}

TEST_P(AttentionTest, CellsThatNoRowSeesMayBeLeftOut) {
  const int n_cells = 190;
  const AttentionCells keys(WeightType::kF16, n_cells, 64, &random_);
  const AttentionCells values(WeightType::kQ80, n_cells, 64, &random_);
  for (const int n_seen : {1, 7, 33, 100, 190}) {
    Queries queries(5, 64, n_cells, &random_);
    std::vector<std::int32_t> cells;
    for (int c = 0; c < n_cells; ++c) {
      // Some next to each other, others apart.
      const bool is_listed = c < n_seen / 2 || static_cast<int>(random_() % 190) < n_seen / 2 ||
                             (c == n_cells - 1 && cells.empty());
      if (is_listed) cells.push_back(c);
      for (std::vector<std::uint16_t>& mask : queries.mask) {
        if (!is_listed) mask[static_cast<std::size_t>(c)] = kMasked;
      }
    }
    const auto want = attend(set(), keys, values, queries, 0, 5);
    std::vector<std::vector<float>> got(5, std::vector<float>(64, -1.0F));
    std::vector<QueryRow> rows;
    for (std::size_t r = 0; r < 5; ++r) {
      rows.push_back({.query = queries.query[r].data(),
                      .mask = queries.mask[r].data(),
                      .begin = 0,
                      .end = static_cast<int>(cells.size()),
                      .out = got[r].data()});
    }
    std::vector<float> scratch(attention_scratch(5, 64, 64, static_cast<int>(cells.size())));
    set().attend({.keys = keys.head(),
                  .values = values.head(),
                  .scale = 0.125F,
                  .cells = cells.data(),
                  .rows = rows.data(),
                  .n_rows = 5},
                 scratch.data());
    EXPECT_EQ(got, want) << cells.size() << " cells";
  }
}

// In the first, a middle and the last tile, alone and together, for all types that can hold one.
TEST_P(AttentionTest, ABrokenCellReachesTheRowsThatSeeItAndNoOther) {
  const int n_cells = 70;
  for (const WeightType type : {WeightType::kF16, WeightType::kBf16, WeightType::kF32}) {
    for (const std::vector<int>& broken : {std::vector<int>{40}, {0}, {69}, {3, 40, 69}}) {
      AttentionCells keys(type, n_cells, 64, &random_);
      AttentionCells values(type, n_cells, 64, &random_);
      Queries queries(6, 64, n_cells, &random_);
      for (std::size_t r = 0; r < 6; ++r) {
        for (const int cell : broken) {
          queries.mask[r][static_cast<std::size_t>(cell)] = r == 2 ? 0 : kMasked;
        }
      }
      const auto before = attend(set(), keys, values, queries, 0, 6);
      for (const int cell : broken) {
        keys.break_cell(cell);
        values.break_cell(cell);
      }
      const auto after = attend(set(), keys, values, queries, 0, 6);
      for (std::size_t r = 0; r < 6; ++r) {
        if (r == 2) {
          EXPECT_TRUE(std::isnan(after[r][0]));
        } else {
          EXPECT_EQ(after[r], before[r]) << "row " << r << ", cell " << broken[0];
        }
      }
    }
  }
}

// Masks here are as long as their rows' ranges and no longer: the sanitizers see what is read.
TEST_P(AttentionTest, ARowsRangeCutsWhatItSeesAsAMaskWould) {
  const int n_cells = 130;
  const AttentionCells keys(WeightType::kF16, n_cells, 64, &random_);
  const AttentionCells values(WeightType::kF16, n_cells, 64, &random_);
  const int begins[] = {0, 5, 40, 67, 0, 129, 130};
  const int ends[] = {130, 10, 97, 67, 33, 130, 130};
  Queries queries(7, 64, n_cells, &random_);
  Queries masked = queries;
  std::vector<QueryRow> rows;
  std::vector<std::vector<float>> out(7, std::vector<float>(64, -1.0F));
  for (std::size_t r = 0; r < 7; ++r) {
    for (int c = 0; c < n_cells; ++c) {
      if (c < begins[r] || c >= ends[r]) masked.mask[r][static_cast<std::size_t>(c)] = kMasked;
    }
    queries.mask[r].resize(static_cast<std::size_t>(ends[r]));
    queries.mask[r].shrink_to_fit();
    rows.push_back({.query = queries.query[r].data(),
                    .mask = queries.mask[r].data(),
                    .begin = begins[r],
                    .end = ends[r],
                    .out = out[r].data()});
  }
  std::vector<float> scratch(attention_scratch(7, 64, 64, n_cells));
  set().attend({.keys = keys.head(),
                .values = values.head(),
                .scale = 0.125F,
                .rows = rows.data(),
                .n_rows = 7},
               scratch.data());
  EXPECT_EQ(out, attend(set(), keys, values, masked, 0, 7));
  EXPECT_EQ(out[3], std::vector<float>(64, 0.0F)) << "an empty range";
  EXPECT_EQ(out[6], std::vector<float>(64, 0.0F)) << "an empty range";
}

TEST_P(AttentionTest, ARowThatSeesNothingBecomesZeros) {
  const AttentionCells keys(WeightType::kF16, 40, 64, &random_);
  const AttentionCells values(WeightType::kF16, 40, 64, &random_);
  Queries queries(2, 64, 40, &random_);
  for (std::uint16_t& mask : queries.mask[1]) mask = kMasked;
  const auto got = attend(set(), keys, values, queries, 0, 2);
  EXPECT_EQ(got[1], std::vector<float>(64, 0.0F));
  EXPECT_NE(got[0], got[1]);
}

TEST_P(AttentionTest, LargeAndSmallScoresKeepTheirShares) {
  const AttentionCells keys(WeightType::kF32, 40, 64, &random_);
  const AttentionCells values(WeightType::kF32, 40, 64, &random_);
  Queries queries(1, 64, 40, &random_);
  for (float& x : queries.query[0]) x *= 1000.0F;  // one cell takes it all
  const auto got = attend(set(), keys, values, queries, 0, 1)[0];
  // Scores of thousands: compared with the loop after taking the largest away.
  int best = -1;
  double most = -std::numeric_limits<double>::infinity();
  for (int c = 0; c < 40; ++c) {
    if (queries.mask[0][static_cast<std::size_t>(c)] == kMasked) continue;
    double score = 0.0;
    const std::vector<double> key = keys.at(c);
    for (std::size_t d = 0; d < 64; ++d) score += queries.query[0][d] * key[d];
    if (score > most) best = c;
    most = std::max(most, score);
  }
  const std::vector<double> value = values.at(best);
  for (std::size_t d = 0; d < 64; ++d) EXPECT_NEAR(got[d], value[d], 1e-5);
}

INSTANTIATE_TEST_SUITE_P(EverySet, AttentionTest, ::testing::ValuesIn(instruction_sets()),
                         testing::set_name);

}  // namespace
}  // namespace outrider::kernels
