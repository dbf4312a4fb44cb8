// A model of llama.cpp's cache of cells, for tests of what keeps track of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace outrider::testing {

// What llama_kv_cache does with the cells of one stream, restated from llama-kv-cache.cpp
// (find_slot, apply_ubatch, seq_rm, seq_cp), without the data.
class CacheModel {
 public:
  explicit CacheModel(int n) : cells_(static_cast<std::size_t>(n)) {}

  // `n` tokens at consecutive positions under all of `seqs`; the cells they got, or none.
  std::vector<int> put(const std::vector<int>& seqs, int first_pos, int n) {
    std::size_t head = head_;
    if (head > used() + 2 * static_cast<std::size_t>(n)) head = 0;
    std::vector<int> taken;
    for (std::size_t tested = 0;
         tested < cells_.size() && taken.size() < static_cast<std::size_t>(n); ++tested, ++head) {
      if (head >= cells_.size()) head = 0;
      if (cells_[head].seqs.empty()) taken.push_back(static_cast<int>(head));
    }
    if (taken.size() < static_cast<std::size_t>(n)) return {};
    for (int i = 0; i < n; ++i) {
      Cell& cell = cells_[static_cast<std::size_t>(taken[static_cast<std::size_t>(i)])];
      cell.pos = first_pos + i;
      cell.seqs = seqs;
    }
    if (!taken.empty()) head_ = static_cast<std::size_t>(taken.back()) + 1;
    return taken;
  }

  void seq_rm(int seq, int p0) {
    std::size_t lowest = cells_.size();
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      Cell& cell = cells_[i];
      const std::vector<int>::iterator found = std::find(cell.seqs.begin(), cell.seqs.end(), seq);
      if (found == cell.seqs.end() || cell.pos < p0) continue;
      cell.seqs.erase(found);
      if (cell.seqs.empty()) lowest = std::min(lowest, i);
    }
    if (lowest != cells_.size() && lowest < head_) head_ = lowest;
  }

  void seq_cp(int from, int to, int p0, int p1) {
    for (Cell& cell : cells_) {
      const bool has = std::find(cell.seqs.begin(), cell.seqs.end(), from) != cell.seqs.end();
      if (!has || cell.pos < p0 || cell.pos >= p1) continue;
      // llama.cpp counts a second copy twice.
      copied_twice_ =
          copied_twice_ || std::find(cell.seqs.begin(), cell.seqs.end(), to) != cell.seqs.end();
      cell.seqs.push_back(to);
    }
  }

  void clear() {
    for (Cell& cell : cells_) cell.seqs.clear();
    head_ = 0;
  }

  // The cells of `seq` in index order, as (index, position).
  std::vector<std::pair<int, int>> of(int seq) const {
    std::vector<std::pair<int, int>> result;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const std::vector<int>& seqs = cells_[i].seqs;
      if (std::find(seqs.begin(), seqs.end(), seq) != seqs.end()) {
        result.emplace_back(static_cast<int>(i), cells_[i].pos);
      }
    }
    return result;
  }

  bool copied_twice() const { return copied_twice_; }

  std::size_t used() const {
    return static_cast<std::size_t>(
        std::count_if(cells_.begin(), cells_.end(), [](const Cell& c) { return !c.seqs.empty(); }));
  }

 private:
  struct Cell {
    int pos = 0;
    std::vector<int> seqs;
  };
  std::vector<Cell> cells_;
  std::size_t head_ = 0;
  bool copied_twice_ = false;
};

}  // namespace outrider::testing
