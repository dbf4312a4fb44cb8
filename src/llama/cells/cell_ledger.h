// CellLedger: which cells of llama.cpp's unified cache hold what, and what may be given back.
//
// Idea. Attention adds up over a sequence's cells in the order of their index, and floating point
// addition depends on the order. A batch gives the bits of single steps only while every sequence's
// cells stand in the order of its positions. llama.cpp puts new tokens into empty cells from the
// lowest on (llama_kv_cache::find_slot), so a cell freed below somebody's last cell would later be
// filled out of order. Hence: free a cell only when no live sequence has a higher one, else park it
// under a sequence id that nobody reads. The ledger keeps the same record as the cache, decides,
// and says when the parked ones are so many that the cache should be rebuilt ("compaction").
//
// Example, two sequences, three drafted tokens each of which one is kept, then two each:
//
//     A0 A1 B0 | A2 a3 a4 B1 b2 b3           evaluated; small letters are rejected
//     A0 A1 B0 | A2 ## ## B1 .  .            a3 a4 lie below B1: parked; b2 b3 are freed
//     A0 A1 B0 | A2 ## ## B1 A3 A4 B2 B3     all grow
//
// A tree's cells are taken in the order of its nodes, parents first, so they grow along each path;
// keeping a path gives up the cells in between. Those below the path's last cell are parked too:
//
//     A0 | a1 b1 b2 a2 c2          root A0; the path a1 c2 is kept
//     A0 | A1 ## ## ## A2
//
// Sequences may share cells: the beginning of one is then the beginning of another. A cell is given
// back, or parked, when the last that reads it gives it up. What is shared stands at the beginning
// of each, and new cells lie above all, so they still grow:
//
//     A0 A1 A2 | B = A0 A1         shared: nothing is copied
//     A0 A1 A2 B2 A3               A and B read A0 A1; each goes on by itself
//
// Measured on three ragged sequences with rejections (SmolLM2 Q4_1): freed at once, 51 of 296
// positions keep their bits; parked, 296.
//
// Cost. append: the cells taken, plus what is skipped. cut, pick: the cells given up, plus one look
// at each sequence. No allocation once a sequence has had its longest text.
//
// A value: copyable, no llama.cpp in it. Not thread safe. Tested by cell_ledger_test.cc against a
// model of find_slot and seq_rm.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace outrider::llama {

class CellLedger {
 public:
  enum class Policy {
    kInOrder,    // as above
    kFreeAtOnce  // for caches whose results do not depend on it, and for showing what it costs
  };

  // What the cache is rebuilt for.
  enum class Rebuild {
    kForTimeToo,  // and where reading past the parked cells costs more than rebuilding
    // Where tokens do not fit otherwise. For caches that lose by it: of layers with a sliding
    // window llama.cpp saves only what the text's end sees, so that no text can be cut any more.
    kForRoom
  };

  CellLedger() = default;
  CellLedger(std::int32_t n_cells, std::int32_t n_sequences, Policy policy = Policy::kInOrder,
             Rebuild rebuild = Rebuild::kForTimeToo);

  std::int32_t n_cells() const { return static_cast<std::int32_t>(readers_.size()); }
  bool in_order() const { return policy_ == Policy::kInOrder; }
  std::int32_t empty() const { return n_cells() - live_ - parked_; }
  std::int32_t live() const { return live_; }      // cells of sequences, shared ones once
  std::int32_t parked() const { return parked_; }  // cells that nobody reads

  // Tokens of `seq`, tentative ones included.
  Pos length(SeqId seq) const { return static_cast<Pos>(cells(seq).size()); }

  // [length(seq)] the cell of each token, in the order of evaluation: that of the positions, but
  // for tentative trees.
  const std::vector<std::int32_t>& cells(SeqId seq) const {
    return cells_[static_cast<std::size_t>(seq)];
  }

  // The next `n` tokens of `seq` get the cells that llama.cpp will choose: the lowest empty
  // ones. False, and nothing changed, when fewer are empty. Calls in the order of the batch.
  bool append(SeqId seq, std::int32_t n);

  // `to` gets the first `length` cells of `from`. REQUIRES: `to` is empty; length <= length(from),
  // without what is tentative there.
  void share(SeqId from, SeqId to, Pos length);

  // The longest beginning that `seq` shares with a sequence of a lower id.
  struct Shared {
    SeqId from = 0;
    Pos length = 0;  // 0: it shares none
  };
  Shared shared(SeqId seq) const;

  // What to do with the positions from `length` on that cut() takes from a sequence without a
  // tentative tree. Those that others read as well come first: they are only taken from it.
  struct Cut {
    Pos parked_from = 0;     // [parked_from, freed_from) go to the junk id,
    Pos freed_from = 0;      // [freed_from, end) are removed;
    bool clear_all = false;  // or: nothing is live any more, clear the whole cache
  };

  // Takes away all but the first `length` positions. Where several sequences give up cells of one
  // evaluation that came to nothing, cut the last of the batch first: all of them are then freed.
  // REQUIRES: 0 <= length <= length(seq).
  Cut cut(SeqId seq, Pos length);

  // Which of the cells that pick() takes from a sequence go to the junk id.
  struct Picked {
    std::int32_t park_below = -1;  // those below this one; the others are removed
    bool clear_all = false;        // or: nothing is live any more, clear the whole cache
  };

  // Keeps the first `length` tokens, and of those behind them the ones at the given offsets
  // (ascending, from 0 on), which become the positions from `length` on. Takes the others away.
  // REQUIRES: 0 <= length; offsets below length(seq) - length.
  Picked pick(SeqId seq, Pos length, std::span<const std::int32_t> offsets);

  // True when the cache should be rebuilt before `n` more tokens: they do not fit otherwise, or
  // (with kForTimeToo) the parked cells have become so many that reading past them costs more.
  bool compaction_due(std::int32_t n) const;

  // The rebuilding that was due found no memory. One that would only save time is due again when as
  // many cells more are parked, or when fewer are live, so that it takes less memory: each try
  // copies what is live, up to where memory ends.
  void put_off();

  // The cache has been cleared and the sequences put back, lowest id first, each without what it
  // shares with a lower one, which it reads as before.
  void compacted();

  // The cache has been cleared.
  void clear();

  // Empty when (1) every cell is marked with the number of positions that have it, (2) with
  // kInOrder, a sequence's cells strictly grow, and no empty cell lies below a live one, (3) the
  // counts are right. Else what is broken.
  std::string check_integrity() const;

 private:
  static constexpr std::int32_t kEmpty = 0;
  static constexpr std::int32_t kParked = -1;

  std::int32_t highest_live(SeqId except) const;  // cell; -1: none
  std::int32_t highest_kept(SeqId seq, std::int32_t last_kept) const;
  void release(std::int32_t cell, bool park);
  bool is_shared(std::int32_t cell) const { return readers_[static_cast<std::size_t>(cell)] > 1; }

  Policy policy_ = Policy::kInOrder;
  Rebuild rebuild_ = Rebuild::kForTimeToo;
  std::vector<std::int32_t> readers_;             // [n_cells] kEmpty, kParked, or the sequences
  std::vector<std::vector<std::int32_t>> cells_;  // [n_sequences][length]
  std::int32_t live_ = 0;
  std::int32_t parked_ = 0;
  std::int32_t search_from_ = 0;     // no empty cell lies below it
  std::int32_t put_off_parked_ = 0;  // what was parked, and live, when rebuilding was put off
  std::int32_t put_off_live_ = 0;
};

}  // namespace outrider::llama
