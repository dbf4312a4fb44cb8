// Attention of several heads in one call, and of parts of the cells that are joined: the bits of
// each head by itself, and from every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/attention.h"
#include "kernels/instruction_set.h"
#include "testing/attention_cells.h"
#include "testing/attention_queries.h"
#include "testing/every_set.h"

namespace outrider::kernels {
namespace {

using testing::AttentionCells;
using testing::Queries;

// Six rows of each of three heads.
class HeadsTogether {
 public:
  static constexpr int kHeads = 3;
  static constexpr int kRows = 6;
  static constexpr int kCells = 150;
  static constexpr int kKeys = 96;
  static constexpr int kValues = 64;
  using Out = std::vector<std::vector<float>>;

  HeadsTogether(WeightType type, std::mt19937_64* random)
      : keys_(type, kCells, kKeys, random, kHeads),
        values_(type, kCells, kValues, random, kHeads),
        queries_(kHeads * kRows, kKeys, kCells, random) {}

  // The `n` rows from `first` on; what they become is written to `out`, [n].
  Attention call(int first, int n, Out* out) {
    out->assign(static_cast<std::size_t>(n), std::vector<float>(kValues, -1.0F));
    rows_.clear();
    for (int i = 0; i < n; ++i) {
      const auto r = static_cast<std::size_t>(first + i);
      rows_.push_back({.query = queries_.query[r].data(),
                       .mask = queries_.mask[r].data(),
                       .begin = 0,
                       .end = r % 2 == 0 ? kCells : kCells - 40,
                       .out = (*out)[static_cast<std::size_t>(i)].data()});
    }
    return {.keys = keys_.head(first / kRows),
            .values = values_.head(first / kRows),
            .scale = 0.125F,
            .rows = rows_.data(),
            .n_rows = n,
            .head_rows = kRows,
            .first = first % kRows};
  }

  // Each head by itself, [kHeads * kRows].
  Out one_by_one(const InstructionSet& set) {
    Out all;
    for (int head = 0; head < kHeads; ++head) {
      Out out;
      Attention one = call(head * kRows, kRows, &out);
      one.head_rows = 0;
      std::vector<float> scratch(attention_scratch(kRows, kKeys, kValues, kCells));
      set.attend(one, scratch.data());
      all.insert(all.end(), out.begin(), out.end());
    }
    return all;
  }

 private:
  AttentionCells keys_;
  AttentionCells values_;
  Queries queries_;
  std::vector<QueryRow> rows_;
};

class AttentionHeadsTest : public ::testing::TestWithParam<const InstructionSet*> {
 protected:
  const InstructionSet& set() const { return *GetParam(); }
  std::mt19937_64 random_{17};
};

TEST_P(AttentionHeadsTest, HeadsTogetherAreWhatEachIsByItself) {
  for (const WeightType type : {WeightType::kF16, WeightType::kQ80, WeightType::kF32}) {
    HeadsTogether heads(type, &random_);
    const auto want = heads.one_by_one(set());
    const auto all = static_cast<int>(want.size());
    for (int first = 0; first < all; ++first) {
      for (int n = 1; n <= all - first; ++n) {
        HeadsTogether::Out got;
        const Attention call = heads.call(first, n, &got);
        std::vector<float> scratch(attention_scratch(n, heads.kKeys, heads.kValues, heads.kCells));
        set().attend(call, scratch.data());
        for (int i = 0; i < n; ++i) {
          ASSERT_EQ(got[static_cast<std::size_t>(i)], want[static_cast<std::size_t>(first + i)])
              << n << " rows from " << first << ", row " << i;
        }
      }
    }
  }
}

// The rows of `heads`, their cells in parts that begin at `bounds`, joined one after the other.
HeadsTogether::Out joined(const InstructionSet& set, HeadsTogether* heads,
                          const std::vector<int>& bounds, bool sinks) {
  const int n = HeadsTogether::kHeads * HeadsTogether::kRows;
  const int size = HeadsTogether::kValues;
  HeadsTogether::Out out;
  const Attention whole = heads->call(0, n, &out);
  std::vector<QueryRow> all(whole.rows, whole.rows + n);
  HeadsTogether::Out sums(static_cast<std::size_t>(n), std::vector<float>(size, NAN));
  HeadsTogether::Out next = sums;
  std::vector<AttentionPart> parts(static_cast<std::size_t>(n));
  std::vector<AttentionPart> next_parts = parts;
  std::vector<float> scratch(
      attention_scratch(n, HeadsTogether::kKeys, size, HeadsTogether::kCells));
  for (std::size_t p = 0; p + 1 < bounds.size(); ++p) {
    std::vector<QueryRow> rows = all;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      rows[r].begin = bounds[p];
      rows[r].end = std::min(rows[r].end, bounds[p + 1]);
      rows[r].out = p == 0 ? sums[r].data() : next[r].data();
      rows[r].part = p == 0 ? &parts[r] : &next_parts[r];
    }
    Attention call = whole;
    call.rows = rows.data();
    call.later = HeadsTogether::kCells;
    set.attend(call, scratch.data());
    for (std::size_t r = 0; r < rows.size() && p > 0; ++r) {
      set.join(sums[r].data(), &parts[r], next[r].data(), next_parts[r], size);
    }
  }
  for (std::size_t r = 0; r < all.size(); ++r) {
    all[r].has_sink = sinks;
    all[r].sink = 0.5F;
    set.finish(all[r], sums[r].data(), parts[r], size);
  }
  return out;
}

TEST_P(AttentionHeadsTest, PartsOfTheCellsJoinedAreAllOfThem) {
  const InstructionSet& scalar = *instruction_sets().back();
  for (const WeightType type : {WeightType::kF16, WeightType::kBf16, WeightType::kQ80}) {
    HeadsTogether heads(type, &random_);
    const auto want = heads.one_by_one(set());
    for (const std::vector<int>& bounds :
         {std::vector<int>{0, 150}, {0, 75, 150}, {0, 1, 33, 100, 149, 150}, {0, 120, 140, 150}}) {
      const auto got = joined(set(), &heads, bounds, false);
      for (std::size_t r = 0; r < want.size(); ++r) {
        for (std::size_t d = 0; d < want[r].size(); ++d) {
          ASSERT_NEAR(got[r][d], want[r][d], 1e-6 * (1.0 + std::fabs(want[r][d]))) << "row " << r;
        }
      }
      for (const bool sinks : {false, true}) {
        ASSERT_EQ(joined(set(), &heads, bounds, sinks), joined(scalar, &heads, bounds, sinks));
      }
    }
  }
}

TEST_P(AttentionHeadsTest, APartThatIsNoNumberMakesTheRowNone) {
  const std::vector<float> none = {NAN, NAN};
  const std::vector<float> zeros = {0.0F, 0.0F};
  std::vector<float> out(2);
  QueryRow row;
  row.out = out.data();
  std::vector<float> sums = {1.0F, 2.0F};
  AttentionPart part{.largest = 0.5F, .divisor = 2.0F};
  set().join(sums.data(), &part, zeros.data(), {}, 2);
  set().finish(row, sums.data(), part, 2);
  EXPECT_EQ(out, (std::vector<float>{0.5F, 1.0F})) << "a part of which nothing is seen";

  set().join(sums.data(), &part, none.data(), {.largest = -INFINITY, .divisor = NAN}, 2);
  set().finish(row, sums.data(), part, 2);
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));

  row.has_sink = true;
  row.sink = -INFINITY;
  set().finish(row, zeros.data(), {}, 2);
  EXPECT_EQ(out, zeros);
}

TEST_P(AttentionHeadsTest, ASinkTakesItsShareOfJoinedPartsAsOfAll) {
  HeadsTogether heads(WeightType::kF16, &random_);
  const auto without = joined(set(), &heads, {0, 75, 150}, false);
  const auto with = joined(set(), &heads, {0, 75, 150}, true);
  HeadsTogether::Out want;
  Attention call = heads.call(0, static_cast<int>(with.size()), &want);
  std::vector<QueryRow> rows(call.rows, call.rows + call.n_rows);
  for (QueryRow& row : rows) {
    row.has_sink = true;
    row.sink = 0.5F;
  }
  call.rows = rows.data();
  std::vector<float> scratch(attention_scratch(call.n_rows, heads.kKeys, heads.kValues, 150));
  set().attend(call, scratch.data());
  EXPECT_NE(with, without);
  for (std::size_t r = 0; r < want.size(); ++r) {
    for (std::size_t d = 0; d < want[r].size(); ++d) {
      ASSERT_NEAR(with[r][d], want[r][d], 1e-6 * (1.0 + std::fabs(want[r][d]))) << "row " << r;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EverySet, AttentionHeadsTest, ::testing::ValuesIn(instruction_sets()),
                         testing::set_name);

}  // namespace
}  // namespace outrider::kernels
