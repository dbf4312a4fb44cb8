#include "llama/cells/cell_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "testing/chi_square.h"
#include "testing/llama_cache.h"

namespace outrider::llama {
namespace {

using testing::CacheModel;

constexpr int kJunk = 255;

// Cuts a sequence to `length`, in the ledger and in the cache.
void cut(CellLedger& ledger, CacheModel& cache, int seq, int length) {
  const CellLedger::Cut cut = ledger.cut(seq, length);
  if (cut.clear_all) {
    cache.clear();
    return;
  }
  if (cut.freed_from > cut.parked_from) {
    cache.seq_cp(seq, kJunk, cut.parked_from, cut.freed_from);
  }
  cache.seq_rm(seq, length);  // of what others read as well, too
}

TEST(CellLedgerTest, ASingleSequenceNeverParksAnything) {
  CellLedger ledger(16, 1);
  ASSERT_TRUE(ledger.append(0, 10));
  const CellLedger::Cut cut = ledger.cut(0, 6);
  EXPECT_EQ(cut.parked_from, 6);
  EXPECT_EQ(cut.freed_from, 6);
  EXPECT_FALSE(cut.clear_all);
  EXPECT_EQ(ledger.empty(), 10);
  EXPECT_EQ(ledger.parked(), 0);
  EXPECT_EQ(ledger.check_integrity(), "");
}

TEST(CellLedgerTest, ARejectedCellBelowAnotherSequencesLastCellIsParked) {
  CellLedger ledger(16, 2);
  ASSERT_TRUE(ledger.append(0, 3));
  ASSERT_TRUE(ledger.append(1, 3));
  const CellLedger::Cut first = ledger.cut(0, 1);
  EXPECT_EQ(first.parked_from, 1);
  EXPECT_EQ(first.freed_from, 3);
  EXPECT_EQ(ledger.parked(), 2);
  const CellLedger::Cut second = ledger.cut(1, 1);
  EXPECT_EQ(second.parked_from, 1);
  EXPECT_EQ(second.freed_from, 1);
  ASSERT_TRUE(ledger.append(0, 2));
  EXPECT_EQ(ledger.cells(0), (std::vector<std::int32_t>{0, 4, 5}));
  EXPECT_EQ(ledger.check_integrity(), "");
}

TEST(CellLedgerTest, ASuffixIsSplitWhereTheOthersHighestCellLies) {
  CellLedger ledger(16, 2);
  ASSERT_TRUE(ledger.append(0, 2));
  ASSERT_TRUE(ledger.append(1, 1));
  ASSERT_TRUE(ledger.append(0, 2));
  const CellLedger::Cut cut = ledger.cut(0, 1);
  EXPECT_EQ(cut.parked_from, 1);
  EXPECT_EQ(cut.freed_from, 2);
  EXPECT_EQ(ledger.parked(), 1);
  EXPECT_EQ(ledger.empty(), 16 - 3);
  EXPECT_EQ(ledger.check_integrity(), "");
}

TEST(CellLedgerTest, WhenNothingIsLiveTheWholeCacheIsCleared) {
  CellLedger ledger(8, 2);
  ASSERT_TRUE(ledger.append(0, 2));
  ASSERT_TRUE(ledger.append(1, 2));
  EXPECT_FALSE(ledger.cut(0, 0).clear_all);
  EXPECT_EQ(ledger.parked(), 2);
  EXPECT_TRUE(ledger.cut(1, 0).clear_all);
  EXPECT_EQ(ledger.parked(), 0);
  EXPECT_EQ(ledger.empty(), 8);
  EXPECT_EQ(ledger.check_integrity(), "");
}

TEST(CellLedgerTest, TooManyTokensChangeNothing) {
  CellLedger ledger(4, 1);
  ASSERT_TRUE(ledger.append(0, 3));
  EXPECT_FALSE(ledger.append(0, 2));
  EXPECT_EQ(ledger.length(0), 3);
  EXPECT_TRUE(ledger.append(0, 1));
  EXPECT_EQ(ledger.check_integrity(), "");
}

TEST(CellLedgerTest, CompactionIsDueWhenTokensDoNotFitOrManyCellsAreParked) {
  CellLedger ledger(1024, 2);
  ASSERT_TRUE(ledger.append(0, 300));
  ASSERT_TRUE(ledger.append(1, 1));
  EXPECT_FALSE(ledger.compaction_due(2000)) << "nothing is parked, so it would not help";
  ledger.cut(0, 45);
  EXPECT_EQ(ledger.parked(), 255);
  EXPECT_FALSE(ledger.compaction_due(1));
  EXPECT_TRUE(ledger.compaction_due(ledger.empty() + 1));
  ledger.cut(0, 44);
  EXPECT_TRUE(ledger.compaction_due(1));
  ledger.compacted();
  EXPECT_FALSE(ledger.compaction_due(1));
  EXPECT_EQ(ledger.parked(), 0);
  EXPECT_EQ(ledger.cells(1), std::vector<std::int32_t>{44});
  EXPECT_EQ(ledger.check_integrity(), "");
}

TEST(CellLedgerTest, ACacheThatLosesByItIsRebuiltForRoomAlone) {
  for (const bool loses : {false, true}) {
    CellLedger ledger(1024, 2, CellLedger::Policy::kInOrder,
                      loses ? CellLedger::Rebuild::kForRoom : CellLedger::Rebuild::kForTimeToo);
    ASSERT_TRUE(ledger.append(0, 300));
    ASSERT_TRUE(ledger.append(1, 1));
    ledger.cut(0, 0);
    ASSERT_EQ(ledger.parked(), 300);
    EXPECT_EQ(ledger.compaction_due(1), !loses);
    EXPECT_EQ(ledger.compaction_due(ledger.empty()), !loses);
    EXPECT_TRUE(ledger.compaction_due(ledger.empty() + 1));
  }
}

TEST(CellLedgerTest, FreeingAtOnceBreaksTheOrder) {
  CellLedger ledger(16, 2, CellLedger::Policy::kFreeAtOnce);
  ASSERT_TRUE(ledger.append(0, 3));
  ASSERT_TRUE(ledger.append(1, 3));
  ledger.cut(0, 1);
  EXPECT_EQ(ledger.parked(), 0);
  ASSERT_TRUE(ledger.append(1, 1));
  EXPECT_EQ(ledger.cells(1).back(), 1);
  EXPECT_LT(ledger.cells(1)[3], ledger.cells(1)[2]);
  EXPECT_EQ(ledger.check_integrity(), "");
}

TEST(CellLedgerTest, ASharedCellIsGivenBackWithItsLastReader) {
  CellLedger ledger(16, 3);
  ASSERT_TRUE(ledger.append(0, 4));
  ledger.share(0, 1, 3);
  ledger.share(1, 2, 2);
  EXPECT_EQ(ledger.live(), 4);
  ASSERT_TRUE(ledger.append(1, 2));
  EXPECT_EQ(ledger.cells(1), (std::vector<std::int32_t>{0, 1, 2, 4, 5}));
  EXPECT_EQ(ledger.shared(1).length, 3);
  EXPECT_EQ(ledger.shared(2).length, 2);
  EXPECT_EQ(ledger.shared(0).length, 0);
  const CellLedger::Cut first = ledger.cut(0, 0);  // its fourth cell lies below another's
  EXPECT_EQ(first.parked_from, 3);
  EXPECT_EQ(first.freed_from, 4);
  EXPECT_FALSE(first.clear_all);
  EXPECT_EQ(ledger.check_integrity(), "");
  ledger.compacted();
  EXPECT_EQ(ledger.cells(1), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(ledger.cells(2), (std::vector<std::int32_t>{0, 1}));
  const CellLedger::Cut second = ledger.cut(1, 0);
  EXPECT_EQ(second.parked_from, 2);
  EXPECT_EQ(second.freed_from, 2);
  EXPECT_TRUE(ledger.cut(2, 0).clear_all);
  EXPECT_EQ(ledger.empty(), 16);
  EXPECT_EQ(ledger.check_integrity(), "");
}

// Random evaluations, rejections, ends, sharing and compactions on a ledger and a cache side by
// side.
class World {
 public:
  explicit World(std::mt19937& random)
      : random_(random),
        n_sequences_(1 + below(5)),
        n_cells_(40 + below(600)),
        ledger_(n_cells_, n_sequences_),
        cache_(n_cells_) {}

  void step() {
    batch_.clear();
    for (int seq = 0; seq < n_sequences_; ++seq) {
      if (below(3) != 0) batch_.push_back({.seq = seq, .length = ledger_.length(seq)});
    }
    std::shuffle(batch_.begin(), batch_.end(), random_);
    if (ledger_.compaction_due(12)) compact();
    for (const Item& item : batch_) append(item);
    if (below(4) == 0) {
      undo();
    } else {
      for (const Item& item : batch_) keep_some(item);
    }
    if (below(12) == 0) {
      const int seq = below(n_sequences_);
      cut(ledger_, cache_, seq, below(2) == 0 ? 0 : below(ledger_.length(seq) + 1));
    }
    if (below(8) == 0) share(below(n_sequences_), below(n_sequences_));
  }

  // Positions must follow the cells, and both must tell the same of every cell.
  void check() const {
    ASSERT_EQ(ledger_.check_integrity(), "");
    ASSERT_EQ(static_cast<int>(cache_.used()), ledger_.live() + ledger_.parked());
    for (int seq = 0; seq < n_sequences_; ++seq) {
      const std::vector<std::pair<int, int>> cells = cache_.of(seq);
      ASSERT_EQ(static_cast<int>(cells.size()), ledger_.length(seq));
      for (std::size_t i = 0; i < cells.size(); ++i) {
        ASSERT_EQ(cells[i].second, static_cast<int>(i));
        ASSERT_EQ(cells[i].first, ledger_.cells(seq)[i]);
      }
    }
  }

 private:
  struct Item {
    int seq;
    int length;  // before the evaluation
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  void share(int from, int to) {
    if (from == to) return;
    cut(ledger_, cache_, to, 0);
    const int length = below(ledger_.length(from) + 1);
    if (length == 0) return;
    ledger_.share(from, to, length);
    cache_.seq_cp(from, to, 0, length);
  }

  // As LlamaModel does it: what a sequence shares with a lower one comes behind its own.
  void compact() {
    cache_.clear();
    std::vector<CellLedger::Shared> shared;
    for (int seq = 0; seq < n_sequences_; ++seq) shared.push_back(ledger_.shared(seq));
    ledger_.compacted();
    for (int seq = 0; seq < n_sequences_; ++seq) {
      const CellLedger::Shared& s = shared[static_cast<std::size_t>(seq)];
      cache_.put({seq}, s.length, ledger_.length(seq) - s.length);
      if (s.length > 0) cache_.seq_cp(s.from, seq, 0, s.length);
    }
  }

  void append(const Item& item) {
    const int n = 1 + below(item.length == 0 ? 20 : 6);
    const bool fits = ledger_.append(item.seq, n);
    const std::vector<int> taken = cache_.put({item.seq}, item.length, n);
    ASSERT_EQ(fits, !taken.empty());
    if (!fits) return;
    const std::vector<std::int32_t>& cells = ledger_.cells(item.seq);
    ASSERT_EQ(std::vector<int>(cells.end() - n, cells.end()), taken);
  }

  void keep_some(const Item& item) {
    const int keep = below(ledger_.length(item.seq) - item.length + 1);
    cut(ledger_, cache_, item.seq, item.length + keep);
  }

  // The last first, which parks nothing.
  void undo() {
    const std::int32_t parked = ledger_.parked();
    for (std::size_t i = batch_.size(); i > 0; --i) {
      cut(ledger_, cache_, batch_[i - 1].seq, batch_[i - 1].length);
    }
    for (const Item& item : batch_) ASSERT_EQ(ledger_.length(item.seq), item.length);
    ASSERT_LE(ledger_.parked(), parked);
  }

  std::mt19937& random_;
  int n_sequences_;
  int n_cells_;
  CellLedger ledger_;
  CacheModel cache_;
  std::vector<Item> batch_;
};

TEST(CellLedgerTest, ItPredictsTheCellsThatLlamaChooses) {
  const auto seed = static_cast<unsigned>(testing::test_seed(20240607));
  SCOPED_TRACE("OUTRIDER_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int n = 0; n < 60; ++n) {
    World world(random);
    for (int step = 0; step < 300; ++step) {
      world.step();
      world.check();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(CellLedgerTest, AnUndoneEvaluationParksNothing) {
  CellLedger ledger(64, 3);
  for (SeqId seq = 0; seq < 3; ++seq) ASSERT_TRUE(ledger.append(seq, 5));
  for (SeqId seq = 0; seq < 3; ++seq) ASSERT_TRUE(ledger.append(seq, 4));
  for (SeqId seq = 2; seq >= 0; --seq) ledger.cut(seq, 5);
  EXPECT_EQ(ledger.parked(), 0);
  EXPECT_EQ(ledger.empty(), 64 - 15);
}

// `parked` cells below those of sequence 1, which has 10.
CellLedger with_parked(std::int32_t parked) {
  CellLedger ledger(4096, 3);
  EXPECT_TRUE(ledger.append(0, parked));
  EXPECT_TRUE(ledger.append(1, 10));
  ledger.cut(0, 0);
  EXPECT_EQ(ledger.parked(), parked);
  return ledger;
}

TEST(CellLedgerTest, ARebuildingThatWasPutOffIsNotDueInTheNextPass) {
  CellLedger ledger = with_parked(300);
  ASSERT_TRUE(ledger.compaction_due(1));
  ledger.put_off();
  EXPECT_FALSE(ledger.compaction_due(1));
  EXPECT_TRUE(ledger.compaction_due(ledger.empty() + 1)) << "what does not fit otherwise is";
  ASSERT_TRUE(ledger.append(0, 255));
  ASSERT_TRUE(ledger.append(1, 1));
  ledger.cut(0, 0);
  EXPECT_FALSE(ledger.compaction_due(1));
  ASSERT_TRUE(ledger.append(0, 1));
  ASSERT_TRUE(ledger.append(1, 1));
  ledger.cut(0, 0);
  ASSERT_EQ(ledger.parked(), 300 + 256);
  EXPECT_TRUE(ledger.compaction_due(1)) << "as many more are parked";
}

TEST(CellLedgerTest, ARebuildingThatWasPutOffIsDueWhenLessIsLive) {
  CellLedger ledger = with_parked(300);
  ledger.put_off();
  ASSERT_TRUE(ledger.append(1, 2));
  EXPECT_FALSE(ledger.compaction_due(1));
  ledger.cut(1, 5);
  EXPECT_TRUE(ledger.compaction_due(1));
  ledger.put_off();
  EXPECT_FALSE(ledger.compaction_due(1));
  ledger.compacted();
  ASSERT_TRUE(ledger.append(0, 256));
  ASSERT_TRUE(ledger.append(1, 1));
  ledger.cut(0, 0);
  EXPECT_TRUE(ledger.compaction_due(1)) << "a rebuilt cache begins anew";
}

}  // namespace
}  // namespace outrider::llama
