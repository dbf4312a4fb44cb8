#include "llama/cells/cell_ledger.h"

#include <algorithm>
#include <cassert>

namespace outrider::llama {

CellLedger::CellLedger(std::int32_t n_cells, std::int32_t n_sequences, Policy policy,
                       Rebuild rebuild)
    : policy_(policy),
      rebuild_(rebuild),
      readers_(static_cast<std::size_t>(n_cells), kEmpty),
      cells_(static_cast<std::size_t>(n_sequences)) {}

bool CellLedger::append(SeqId seq, std::int32_t n) {
  if (n > empty()) return false;
  std::vector<std::int32_t>& cells = cells_[static_cast<std::size_t>(seq)];
  for (std::int32_t taken = 0; taken < n; ++search_from_) {
    std::int32_t& readers = readers_[static_cast<std::size_t>(search_from_)];
    if (readers != kEmpty) continue;
    readers = 1;
    cells.push_back(search_from_);
    ++taken;
  }
  live_ += n;
  return true;
}

void CellLedger::share(SeqId from, SeqId to, Pos length) {
  const std::vector<std::int32_t>& source = cells(from);
  std::vector<std::int32_t>& cells = cells_[static_cast<std::size_t>(to)];
  assert(from != to && cells.empty() && length >= 0 && length <= this->length(from));
  cells.assign(source.begin(), source.begin() + length);
  for (const std::int32_t cell : cells) ++readers_[static_cast<std::size_t>(cell)];
}

CellLedger::Shared CellLedger::shared(SeqId seq) const {
  Shared shared;
  const std::vector<std::int32_t>& mine = cells(seq);
  for (SeqId other = 0; other < seq; ++other) {
    const std::vector<std::int32_t>& theirs = cells(other);
    const std::size_t most = std::min(mine.size(), theirs.size());
    std::size_t n = 0;
    while (n < most && mine[n] == theirs[n]) ++n;
    if (static_cast<Pos>(n) > shared.length) {
      shared = {.from = other, .length = static_cast<Pos>(n)};
    }
  }
  return shared;
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
  readers_[static_cast<std::size_t>(cell)] = park ? kParked : kEmpty;
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
  if (n_kept == cells.size()) return cut;
  std::size_t n_shared = 0;  // of those that go: they come first
  while (n_kept + n_shared < cells.size() && is_shared(cells[n_kept + n_shared])) ++n_shared;
  const std::size_t first_own = n_kept + n_shared;
  if (live_ == static_cast<std::int32_t>(cells.size() - first_own)) {
    clear();
    cut.clear_all = true;
    return cut;
  }
  const std::int32_t park_below = highest_kept(seq, length > 0 ? cells[n_kept - 1] : -1);
  // Cells grow with the position, so those that must be parked come first.
  for (std::size_t i = n_kept; i < first_own; ++i) --readers_[static_cast<std::size_t>(cells[i])];
  cut.parked_from = cut.freed_from = static_cast<Pos>(first_own);
  for (std::size_t i = first_own; i < cells.size(); ++i) {
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
  if (n > empty()) return true;
  if (rebuild_ == Rebuild::kForRoom) return false;
  const std::int32_t many = std::max(256, live_ / 4);
  return parked_ >= many && (live_ < put_off_live_ || parked_ >= put_off_parked_ + many);
}

void CellLedger::put_off() {
  put_off_parked_ = parked_;
  put_off_live_ = live_;
}

void CellLedger::compacted() {
  std::vector<Shared> shared;
  for (std::size_t seq = 0; seq < cells_.size(); ++seq) {
    shared.push_back(this->shared(static_cast<SeqId>(seq)));
  }
  std::fill(readers_.begin(), readers_.end(), kEmpty);
  std::int32_t next = 0;
  for (std::size_t seq = 0; seq < cells_.size(); ++seq) {
    const std::vector<std::int32_t>& source = cells(shared[seq].from);
    for (std::size_t i = 0; i < cells_[seq].size(); ++i) {
      const bool taken = i < static_cast<std::size_t>(shared[seq].length);
      cells_[seq][i] = taken ? source[i] : next++;
      ++readers_[static_cast<std::size_t>(cells_[seq][i])];
    }
  }
  live_ = next;
  parked_ = 0;
  put_off_parked_ = put_off_live_ = 0;
  search_from_ = next;
}

void CellLedger::clear() {
  std::fill(readers_.begin(), readers_.end(), kEmpty);
  for (std::vector<std::int32_t>& cells : cells_) cells.clear();
  live_ = 0;
  parked_ = 0;
  put_off_parked_ = put_off_live_ = 0;
  search_from_ = 0;
}

std::string CellLedger::check_integrity() const {
  std::vector<std::int32_t> readers(readers_.size(), 0);
  for (std::size_t seq = 0; seq < cells_.size(); ++seq) {
    std::int32_t previous = -1;
    for (const std::int32_t cell : cells_[seq]) {
      const std::string where =
          "sequence " + std::to_string(seq) + ", cell " + std::to_string(cell) + ": ";
      if (cell < 0 || cell >= n_cells()) return where + "outside the cache";
      if (policy_ == Policy::kInOrder && cell <= previous) {
        return where + "not above its predecessor " + std::to_string(previous);
      }
      previous = cell;
      ++readers[static_cast<std::size_t>(cell)];
    }
  }
  std::int32_t n_live = 0;
  for (std::size_t cell = 0; cell < readers.size(); ++cell) {
    if (readers[cell] > 0) ++n_live;
    if (readers[cell] == std::max(readers_[cell], 0)) continue;
    return "cell " + std::to_string(cell) + " is marked for " + std::to_string(readers_[cell]) +
           " sequences, and " + std::to_string(readers[cell]) + " have it";
  }
  if (n_live != live_) return "the count of live cells is wrong";
  if (std::count(readers_.begin(), readers_.end(), kParked) != parked_) {
    return "the count of parked cells is wrong";
  }
  const std::vector<std::int32_t>::const_iterator first =
      std::find(readers_.begin(), readers_.end(), kEmpty);
  if (first - readers_.begin() < search_from_) return "an empty cell lies below the search's start";
  if (policy_ == Policy::kInOrder && first - readers_.begin() < highest_live(/*except=*/-1)) {
    return "an empty cell lies below a live one";
  }
  return "";
}

}  // namespace outrider::llama
