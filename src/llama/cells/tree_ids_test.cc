#include "llama/cells/tree_ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "llama/cells/cell_ledger.h"
#include "testing/chi_square.h"
#include "testing/llama_cache.h"
#include "testing/llama_trees.h"
#include "testing/sanitized.h"

namespace outrider::llama {
namespace {

using testing::CacheModel;
using testing::random_shape;
using testing::TreeShape;

constexpr int kJunk = 255;

TokenTree tree_of(const TreeShape& shape, NodeId n) {
  TokenTree tree(100);
  for (NodeId id = 1; id < n; ++id) tree.add(shape[static_cast<std::size_t>(id)], id, 1.0f, 1);
  return tree;
}

std::vector<std::vector<int>> ids_of(const TreeIds& ids, NodeId first) {
  std::vector<TreeIds::Id> flat;
  std::vector<std::int32_t> counts;
  ids.list_ids(first, &flat, &counts);
  std::vector<std::vector<int>> result;
  std::size_t at = 0;
  for (const std::int32_t n : counts) {
    result.emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(at),
                        flat.begin() + static_cast<std::ptrdiff_t>(at) + n);
    at += static_cast<std::size_t>(n);
  }
  return result;
}

TEST(TreeIdsTest, EachNodeCarriesTheIdsOfTheLeavesBelowIt) {
  // The example of the header: root -> c -> (d, e); root -> f.
  TreeIds ids(0, 10, 3);
  ids.begin(2, 0);
  std::vector<TreeIds::Copy> copies;
  ids.grow(tree_of({kNoNode, 0, 1, 1, 0}, 5), &copies);
  EXPECT_EQ(ids.n_ids(), 3);
  EXPECT_EQ(ids_of(ids, 0), (std::vector<std::vector<int>>{{0, 10, 11}, {0, 10}, {0}, {10}, {11}}));
  ASSERT_EQ(copies.size(), 2u) << "two fresh ids are given the text";
  EXPECT_EQ(copies[1].from, 0);
  EXPECT_EQ(copies[1].to, 11);
  EXPECT_EQ(copies[1].begin, 0);
  EXPECT_EQ(copies[1].end, 2);
}

TEST(TreeIdsTest, AChainKeepsToItsOwnId) {
  TreeIds ids(3, 10, 4);
  ids.begin(7, 2);
  std::vector<TreeIds::Copy> copies;
  ids.grow(tree_of({kNoNode, 0, 1, 2}, 4), &copies);
  EXPECT_TRUE(copies.empty());
  EXPECT_EQ(ids_of(ids, 2), (std::vector<std::vector<int>>{{3}, {3}}));
  const std::vector<std::int32_t> cells{9, 10, 11, 12, 13, 14};
  const std::vector<NodeId> path{0, 1};
  const TreeIds::Settlement end = ids.settle(/*kept=*/true, path, cells, /*park_below=*/-1);
  EXPECT_TRUE(end.parked.empty());
  EXPECT_TRUE(end.copied.empty());
  ASSERT_EQ(end.removed.size(), 1u);
  EXPECT_EQ(end.removed[0].from, 11);
}

TEST(TreeIdsTest, AnIdThatIsUsedAgainIsGivenOnlyWhatItMissed) {
  TreeIds ids(0, 1, 1);
  for (Pos length = 100; length < 103; ++length) {
    ids.begin(length, 0);
    std::vector<TreeIds::Copy> copies;
    ids.grow(tree_of({kNoNode, 0, 0}, 3), &copies);
    if (length == 100) {
      EXPECT_EQ(copies.at(0).end - copies.at(0).begin, 100);
    } else {
      EXPECT_TRUE(copies.empty()) << "the root was evaluated under both ids";
    }
    const std::vector<std::int32_t> cells{0, 1, 2};
    const std::vector<NodeId> path{0};
    ids.settle(/*kept=*/true, path, cells, -1);
  }
}

TEST(TreeIdsTest, OnlyTheTentativeTreeWithMoreBehindItIsAGrownOne) {
  TreeIds ids(0, 1, 4);
  ids.begin(0, 0);
  std::vector<TreeIds::Copy> copies;
  ids.grow(tree_of({kNoNode, 0}, 2), &copies);
  EXPECT_TRUE(ids.is_grown(tree_of({kNoNode, 0, 0}, 3), 2));
  EXPECT_FALSE(ids.is_grown(tree_of({kNoNode, 0, 0}, 3), 1));
  EXPECT_FALSE(ids.is_grown(tree_of({kNoNode, 0}, 2), 2)) << "nothing is new";
  TokenTree other(100);
  other.add(kRoot, 77, 1.0f, 1);
  other.add(kRoot, 78, 1.0f, 1);
  EXPECT_FALSE(ids.is_grown(other, 2));
}

// Sequences with trees that start, grow, fail, end and are cut, in one cache; the ledger, the ids
// and a model of llama.cpp's cache side by side.
class World {
 public:
  explicit World(std::mt19937& random)
      : random_(random),
        n_sequences_(1 + below(4)),
        n_extra_(1 + below(12)),
        ledger_(900, n_sequences_),
        cache_(900) {
    for (SeqId seq = 0; seq < n_sequences_; ++seq) {
      sequences_.push_back({.ids = TreeIds(seq, n_sequences_ + seq * n_extra_, n_extra_)});
    }
  }

  void step() {
    const bool open = std::any_of(sequences_.begin(), sequences_.end(),
                                  [](const Sequence& s) { return s.ids.open(); });
    if (!open && (ledger_.compaction_due(200) || below(40) == 0)) compact();
    std::vector<std::pair<SeqId, NodeId>> batch;
    for (SeqId seq = 0; seq < n_sequences_; ++seq) {
      if (below(3) == 0 || ledger_.empty() < 60) continue;
      batch.emplace_back(seq, of(seq).ids.open() ? of(seq).ids.n_nodes() : 0);
      evaluate(seq);
      if (::testing::Test::HasFatalFailure()) return;
    }
    if (below(5) == 0) {
      while (!batch.empty()) {
        undo(batch.back().first, batch.back().second);
        batch.pop_back();
      }
    }
    check();
    for (SeqId seq = 0; seq < n_sequences_; ++seq) {
      if (of(seq).ids.open() && below(2) == 0) settle(seq);
      if (!of(seq).ids.open() && (below(15) == 0 || of(seq).text.size() > 150)) cut(seq);
    }
    check();
  }

 private:
  struct Sequence {
    TreeIds ids;
    std::vector<int> text{};    // cells of the committed tokens
    std::vector<int> prefix{};  // tentative
    TreeShape shape{};
    std::vector<int> nodes{};  // cells
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Sequence& of(SeqId seq) { return sequences_[static_cast<std::size_t>(seq)]; }

  void apply(const TreeIds::Copy& c) { cache_.seq_cp(c.from, c.to, c.begin, c.end); }
  void apply(const std::vector<TreeIds::Removal>& removed) {
    for (const TreeIds::Removal& r : removed) cache_.seq_rm(r.id, r.from);
  }

  void evaluate(SeqId seq) {
    Sequence& s = of(seq);
    const NodeId first = s.ids.open() ? s.ids.n_nodes() : 0;
    int n_prefix = 0;
    if (first == 0) {
      s.shape = random_shape(random_, 1 + below(14), n_extra_ + 1);
      s.nodes.clear();
      s.prefix.clear();
      n_prefix = below(4) == 0 ? below(20) : 0;
      s.ids.begin(static_cast<Pos>(s.text.size()), n_prefix);
    }
    const NodeId size = static_cast<NodeId>(s.shape.size());
    if (first == size) return;
    const NodeId end = first + 1 + below(size - first);
    std::vector<TreeIds::Copy> copies;
    s.ids.grow(tree_of(s.shape, end), &copies);
    for (const TreeIds::Copy& c : copies) {
      ASSERT_LT(c.begin, c.end);
      apply(c);
    }
    ASSERT_TRUE(ledger_.append(seq, n_prefix + end - first));
    std::vector<int> all;
    for (int i = 0; i < s.ids.n_ids(); ++i) all.push_back(s.ids.id(i));
    if (n_prefix > 0) s.prefix = cache_.put(all, static_cast<int>(s.text.size()), n_prefix);
    const std::vector<std::vector<int>> lists = ids_of(s.ids, first);
    check_coupled(lists, all, n_prefix > 0);
    const TokenTree tree = tree_of(s.shape, end);
    for (NodeId id = first; id < end; ++id) {
      const std::vector<int>& ids = lists[static_cast<std::size_t>(id - first)];
      const std::vector<int> cell =
          cache_.put(ids, static_cast<int>(s.ids.base()) + tree.node(id).depth, 1);
      ASSERT_EQ(cell.size(), 1u);
      s.nodes.push_back(cell[0]);
    }
    // What attention sees through each of a node's ids: the text and the path, nothing else.
    for (NodeId id = first; id < end; ++id) {
      std::set<int> expected(s.text.begin(), s.text.end());
      expected.insert(s.prefix.begin(), s.prefix.end());
      for (const NodeId at : tree.path_to(id)) {
        expected.insert(s.nodes[static_cast<std::size_t>(at)]);
      }
      for (const int carried : lists[static_cast<std::size_t>(id - first)]) {
        std::set<int> seen;
        for (const std::pair<int, int>& cell : cache_.of(carried)) {
          if (cell.second <= s.ids.base() + tree.node(id).depth) seen.insert(cell.first);
        }
        ASSERT_EQ(seen, expected) << "node " << id << ", id " << carried;
      }
    }
  }

  // llama.cpp's rule: ids that share a token of the batch have the same last position before it.
  void check_coupled(const std::vector<std::vector<int>>& lists, const std::vector<int>& all,
                     bool prefix) {
    std::vector<std::vector<int>> coupled = lists;
    if (prefix) coupled.push_back(all);
    for (const std::vector<int>& ids : coupled) {
      for (const int id : ids) {
        ASSERT_EQ(cache_.of(id).size(), cache_.of(ids.front()).size());
      }
    }
  }

  void undo(SeqId seq, NodeId first) {
    Sequence& s = of(seq);
    if (first == s.ids.n_nodes()) return;  // it had nothing new
    const std::int32_t parked = ledger_.parked();
    std::vector<TreeIds::Removal> removed;
    s.ids.undo(first, &removed);
    s.nodes.resize(static_cast<std::size_t>(first));
    if (first == 0) s.prefix.clear();
    const std::size_t length = s.text.size() + s.prefix.size() + s.nodes.size();
    const CellLedger::Cut cut = ledger_.cut(seq, static_cast<Pos>(length));
    ASSERT_LE(ledger_.parked(), parked) << "an undone evaluation parks nothing";
    if (cut.clear_all) {
      clear();
    } else {
      apply(removed);
    }
  }

  void settle(SeqId seq) {
    Sequence& s = of(seq);
    const bool kept = below(8) != 0;
    const TokenTree tree = tree_of(s.shape, s.ids.n_nodes());
    const NodeId end = below(tree.size() + 1) - 1;
    std::vector<NodeId> path;
    if (kept && end >= 0) path = tree.path_to(end);
    std::vector<std::int32_t> cells(s.prefix.begin(), s.prefix.end());
    cells.insert(cells.end(), s.nodes.begin(), s.nodes.end());
    std::vector<std::int32_t> offsets;
    for (std::size_t i = 0; kept && i < s.prefix.size(); ++i) {
      offsets.push_back(static_cast<std::int32_t>(i));
    }
    for (const NodeId id : path) offsets.push_back(static_cast<std::int32_t>(s.prefix.size()) + id);
    const CellLedger::Picked picked = ledger_.pick(seq, static_cast<Pos>(s.text.size()), offsets);
    const TreeIds::Settlement settlement = s.ids.settle(kept, path, cells, picked.park_below);
    if (kept) s.text.insert(s.text.end(), s.prefix.begin(), s.prefix.end());
    for (const NodeId id : path) s.text.push_back(s.nodes[static_cast<std::size_t>(id)]);
    if (picked.clear_all) return clear();
    for (TreeIds::Copy c : settlement.parked) {
      c.to = kJunk;
      apply(c);
    }
    apply(settlement.removed);
    for (const TreeIds::Copy& c : settlement.copied) apply(c);
  }

  void cut(SeqId seq) {
    Sequence& s = of(seq);
    const int length = below(2) == 0 ? 0 : below(static_cast<int>(s.text.size()) + 1);
    std::vector<TreeIds::Removal> removed;
    s.ids.truncate(length, &removed);
    removed.push_back({.id = seq, .from = length});
    const CellLedger::Cut cut = ledger_.cut(seq, length);
    s.text.resize(static_cast<std::size_t>(length));
    if (cut.clear_all) return clear();
    if (cut.freed_from > cut.parked_from) {
      cache_.seq_cp(seq, kJunk, cut.parked_from, cut.freed_from);
    }
    apply(removed);
  }

  void clear() {
    cache_.clear();
    for (Sequence& s : sequences_) s.ids.detach();
  }

  void compact() {
    cache_.clear();
    ledger_.compacted();
    for (SeqId seq = 0; seq < n_sequences_; ++seq) {
      of(seq).ids.detach();
      of(seq).text = cache_.put({seq}, 0, static_cast<int>(of(seq).text.size()));
    }
  }

  void check() {
    ASSERT_EQ(ledger_.check_integrity(), "");
    ASSERT_FALSE(cache_.copied_twice());
    ASSERT_EQ(static_cast<int>(cache_.used()), ledger_.live() + ledger_.parked());
    for (SeqId seq = 0; seq < n_sequences_; ++seq) {
      const Sequence& s = of(seq);
      for (int i = 0; i <= n_extra_; ++i) {
        const std::vector<std::pair<int, int>> held = cache_.of(s.ids.id(i));
        ASSERT_EQ(static_cast<Pos>(held.size()), s.ids.held(i, static_cast<Pos>(s.text.size())));
        for (std::size_t at = 0; at < held.size(); ++at) {
          ASSERT_EQ(held[at].second, static_cast<int>(at)) << "positions must follow the cells";
          if (at < s.text.size()) {
            ASSERT_EQ(held[at].first, s.text[at]);
          }
        }
      }
      const std::vector<std::int32_t>& cells = ledger_.cells(seq);
      if (s.ids.open()) continue;
      ASSERT_EQ(std::vector<int>(cells.begin(), cells.end()), s.text);
    }
  }

  std::mt19937& random_;
  int n_sequences_;
  int n_extra_;
  CellLedger ledger_;
  CacheModel cache_;
  std::vector<Sequence> sequences_;
};

// With the address sanitizer 60 take 219 s.
constexpr int kWorlds = testing::kSanitized ? 6 : 60;

TEST(TreeIdsTest, WhateverHappensEachNodeSeesItsOwnPathAndCellsGrow) {
  const auto seed = static_cast<unsigned>(testing::test_seed(20261121));
  SCOPED_TRACE("OUTRIDER_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int n = 0; n < kWorlds; ++n) {
    World world(random);
    for (int step = 0; step < 150; ++step) {
      world.step();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace outrider::llama
