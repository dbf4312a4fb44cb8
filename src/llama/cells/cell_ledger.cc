#include "llama/cells/cell_ledger.h"

#include <algorithm>
#include <cassert>

namespace outrider::llama {

CellLedger::CellLedger(std::int32_t n_cells, std::int32_t n_sequences, Policy policy)
    : policy_(policy),
      owner_(static_cast<std::size_t>(n_cells), kEmpty),
      cells_(static_cast<std::size_t>(n_sequences)) {}

bool CellLedger::append(SeqId seq, std::int32_t n) {
  if (n > empty()) return false;
  std::vector<std::int32_t>& cells = cells_[static_cast<std::size_t>(seq)];
  for (std::int32_t taken = 0; taken < n; ++search_from_) {
    std::int32_t& owner = owner_[static_cast<std::size_t>(search_from_)];
    if (owner != kEmpty) continue;
    owner = seq;
    cells.push_back(search_from_);
    ++taken;
  }
  live_ += n;
  return true;
}

std::int32_t CellLedger::highest_live(SeqId except) const {
  std::int32_t highest = -1;
  for (std::size_t seq = 0; seq < cells_.size(); ++seq) {
    if (static_cast<SeqId>(seq) == except || cells_[seq].empty()) continue;
    highest = std::max(highest, cells_[seq].back());
  }
  return highest;
}

void CellLedger::release(std::int32_t cell, bool park) {
  owner_[static_cast<std::size_t>(cell)] = park ? kParked : kEmpty;
  --live_;
  if (park) {
    ++parked_;
  } else {
    search_from_ = std::min(search_from_, cell);
  }
}

// The highest cell that stays live when `last_kept` (-1: none) is the last of `seq`; -1 where the
// order does not matter.
std::int32_t CellLedger::highest_kept(SeqId seq, std::int32_t last_kept) const {
  return policy_ == Policy::kInOrder ? std::max(highest_live(seq), last_kept) : -1;
}

CellLedger::Cut CellLedger::cut(SeqId seq, Pos length) {
  std::vector<std::int32_t>& cells = cells_[static_cast<std::size_t>(seq)];
  const std::size_t n_kept = static_cast<std::size_t>(length);
  assert(length >= 0 && n_kept <= cells.size());
  Cut cut{.parked_from = length, .freed_from = length, .clear_all = false};
  const std::size_t n_gone = cells.size() - n_kept;
  if (n_gone == 0) return cut;
  if (live_ == static_cast<std::int32_t>(n_gone)) {
    clear();
    cut.clear_all = true;
    return cut;
  }
  const std::int32_t park_below = highest_kept(seq, length > 0 ? cells[n_kept - 1] : -1);
  // Cells grow with the position, so those that must be parked come first.
  for (std::size_t i = n_kept; i < cells.size(); ++i) {
    const bool park = cells[i] < park_below;
    if (park) ++cut.freed_from;
    release(cells[i], park);
  }
  cells.resize(n_kept);
  return cut;
}

CellLedger::Picked CellLedger::pick(SeqId seq, Pos length, std::span<const std::int32_t> offsets) {
  std::vector<std::int32_t>& cells = cells_[static_cast<std::size_t>(seq)];
  const std::size_t n_before = static_cast<std::size_t>(length);
  assert(length >= 0 && n_before + offsets.size() <= cells.size());
  const std::size_t n_kept = n_before + offsets.size();
  if (n_kept == 0 && live_ == static_cast<std::int32_t>(cells.size())) {
    clear();
    return {.park_below = -1, .clear_all = true};
  }
  std::int32_t last_kept = n_before > 0 ? cells[n_before - 1] : -1;
  if (!offsets.empty()) last_kept = cells[n_before + static_cast<std::size_t>(offsets.back())];
  const std::int32_t park_below = highest_kept(seq, last_kept);
  std::size_t next = 0;  // of the offsets
  for (std::size_t i = n_before; i < cells.size(); ++i) {
    const bool kept =
        next < offsets.size() && static_cast<std::size_t>(offsets[next]) == i - n_before;
    if (kept) {
      cells[n_before + next++] = cells[i];
    } else {
      release(cells[i], cells[i] < park_below);
    }
  }
  assert(next == offsets.size());
  cells.resize(n_kept);
  return {.park_below = park_below, .clear_all = false};
}

bool CellLedger::compaction_due(std::int32_t n) const {
  if (parked_ == 0) return false;
  return n > empty() || parked_ >= std::max(256, live_ / 4);
}

void CellLedger::compacted() {
  std::fill(owner_.begin(), owner_.end(), kEmpty);
  std::int32_t next = 0;
  for (std::size_t seq = 0; seq < cells_.size(); ++seq) {
    for (std::int32_t& cell : cells_[seq]) {
      cell = next++;
      owner_[static_cast<std::size_t>(cell)] = static_cast<std::int32_t>(seq);
    }
  }
  parked_ = 0;
  search_from_ = next;
}

void CellLedger::clear() {
  std::fill(owner_.begin(), owner_.end(), kEmpty);
  for (std::vector<std::int32_t>& cells : cells_) cells.clear();
  live_ = 0;
  parked_ = 0;
  search_from_ = 0;
}

std::string CellLedger::check_integrity() const {
  std::int32_t n_live = 0;
  for (std::size_t seq = 0; seq < cells_.size(); ++seq) {
    std::int32_t previous = -1;
    for (const std::int32_t cell : cells_[seq]) {
      const std::string where =
          "sequence " + std::to_string(seq) + ", cell " + std::to_string(cell) + ": ";
      if (cell < 0 || cell >= n_cells()) return where + "outside the cache";
      if (owner_[static_cast<std::size_t>(cell)] != static_cast<std::int32_t>(seq)) {
        return where + "marked as another's";
      }
      if (policy_ == Policy::kInOrder && cell <= previous) {
        return where + "not above its predecessor " + std::to_string(previous);
      }
      previous = cell;
      ++n_live;
    }
  }
  if (n_live != live_) return "the count of live cells is wrong";
  if (std::count_if(owner_.begin(), owner_.end(), [](std::int32_t o) { return o >= 0; }) != live_) {
    return "a cell is marked for a sequence that does not have it";
  }
  if (std::count(owner_.begin(), owner_.end(), kParked) != parked_) {
    return "the count of parked cells is wrong";
  }
  const std::vector<std::int32_t>::const_iterator first =
      std::find(owner_.begin(), owner_.end(), kEmpty);
  if (first - owner_.begin() < search_from_) return "an empty cell lies below the search's start";
  if (policy_ == Policy::kInOrder && first - owner_.begin() < highest_live(/*except=*/-1)) {
    return "an empty cell lies below a live one";
  }
  return "";
}

}  // namespace outrider::llama
