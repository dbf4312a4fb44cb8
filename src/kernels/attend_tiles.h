// What the steps of an attention have in common, for kernels/attend.h: the cells of a call, tile by
// tile, and the rows that see some of a tile's.
//
// A tile is as many cells as a vector of `S` has lanes. "Cell" is a place among the cells of the
// call from here on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"
#include "kernels/cache_cells.h"

namespace outrider::kernels {

template <class S>
class AttendTiles {
 protected:
  using Floats = typename S::Floats;
  static constexpr int kLanes = S::kRows;
  static constexpr int kRowsAtOnce = 4;
  // How far ahead of the tile in work the cache is fetched. Left to the processor, a draft's pass
  // behind 450 tokens took 7.3 ms instead of 4.3; 1, 2 and 4 are alike, 8 is 10 % slower (Zen 4).
  static constexpr int kTilesAhead = 2;

  // `seen`: extent_of(call).
  AttendTiles(const Attention& call, const AttentionExtent& seen) : call_(call), seen_(seen) {}

  static std::size_t padded(int n) { return padded_lanes<S>(n); }
  static std::size_t at(int row, std::size_t stride) {
    return static_cast<std::size_t>(row) * stride;
  }

  // --- Cells

  const std::uint8_t* bytes_of(const CacheHeads& heads, int cell) const {
    const auto at = static_cast<std::size_t>(call_.cells != nullptr ? call_.cells[cell] : cell);
    return heads.bytes + at * heads.stride;
  }
  int count(int cell) const { return seen_.end - cell < kLanes ? seen_.end - cell : kLanes; }

  // Cells of some heads, as they are gone through.
  struct Stretch {
    const CacheHeads& heads;
    std::size_t bytes;  // of a cell: in a cache heads lie side by side; else of the first
    int begin;
    int end;
  };
  Stretch stretch_of(const CacheHeads& heads, int begin, int end) const {
    std::size_t bytes = 0;
    with_reader<S>(heads.type, [&]<class Reader>() { bytes = Reader::bytes(heads.size); });
    const bool together = heads.head_stride == bytes;
    return {heads, bytes * static_cast<std::size_t>(together ? call_.n_heads() : 1), begin, end};
  }

  // Fetches cells that come later, a line whenever next() is called. Processors do not foresee
  // where the next cell lies; and many lines at once would hold up the cells in work: fetched tile
  // by tile, 8,192 cells took 118 us a head in place of 90 (Zen 5, three heads together).
  class Ahead {
   public:
    explicit Ahead(const AttendTiles& tiles) : tiles_(tiles) {}

    // From now on these cells, as far as there are any.
    void set(const Stretch& stretch, int begin, int end) {
      stretch_ = &stretch;
      cell_ = begin;
      end_ = end < stretch.end ? end : stretch.end;
      if (cell_ < end_) begin_cell();
    }
    [[gnu::always_inline]] void next() {
      if (cell_ >= end_) return;
      __builtin_prefetch(line_, 0, 2);
      line_ += 64;
      if (line_ < last_) return;
      ++cell_;
      if (cell_ < end_) begin_cell();
    }
    void rest() {
      while (cell_ < end_) next();
    }

   private:
    void begin_cell() {
      line_ = tiles_.bytes_of(stretch_->heads, cell_);
      last_ = line_ + stretch_->bytes;
      line_ -= reinterpret_cast<std::uintptr_t>(line_) % 64;
    }

    const AttendTiles& tiles_;
    const Stretch* stretch_ = nullptr;
    int cell_ = 0;
    int end_ = 0;
    const std::uint8_t* line_ = nullptr;
    const std::uint8_t* last_ = nullptr;
  };

  // Calls function(cell, head, ahead) for the first cell of each tile and each head, when cells_
  // says where the tile lies. What the `next` stretch begins with is fetched in the end.
  template <class Function>
  void each_tile(const Stretch& stretch, const Stretch& next, const Function& function) {
    const int n = call_.n_heads();
    Ahead ahead(*this);
    int later = stretch.begin + kTilesAhead * kLanes;
    for (int cell = stretch.begin; cell < stretch.end; cell += kLanes, later += kLanes) {
      if (!is_seen(cell)) continue;
      for (int c = 0; c < kLanes; ++c) {
        cells_[c] = bytes_of(stretch.heads, c < count(cell) ? cell + c : cell);
      }
      const bool goes_on = later < stretch.end;
      const int tiles = (stretch.end - stretch.begin + kLanes - 1) / kLanes;
      const int from = goes_on ? later : later - stretch.begin - tiles * kLanes + next.begin;
      for (int head = 0; head < n; ++head) {
        ahead.set(goes_on ? stretch : next, from + kLanes * head / n,
                  from + kLanes * (head + 1) / n);
        function(cell, head, ahead);
        ahead.rest();
      }
    }
  }
  void fetch_first(const Stretch& stretch) const {
    Ahead ahead(*this);
    ahead.set(stretch, stretch.begin, stretch.begin + kTilesAhead * kLanes);
    ahead.rest();
  }

  // --- Rows

  // The rows of a head.
  int begin_row(int head) const {
    const int begin = head * call_.head_rows - call_.first;
    return begin > 0 ? begin : 0;
  }
  int end_row(int head) const {
    const int end = (head + 1) * call_.head_rows - call_.first;
    return call_.head_rows == 0 || end > call_.n_rows ? call_.n_rows : end;
  }
  bool sees(int row, int cell) const {
    const QueryRow& r = call_.rows[row];
    return !is_empty(row) && r.begin < cell + kLanes && r.end > cell;
  }
  bool is_seen(int cell) const {
    int r = 0;
    while (r < call_.n_rows && !sees(r, cell)) ++r;
    return r < call_.n_rows;
  }
  // The first tile that a row sees some cells of, and the end of the last.
  int first_cell(int row) const {
    return seen_.first + (call_.rows[row].begin - seen_.first) / kLanes * kLanes;
  }
  int end_cell(int row) const {
    return seen_.first + (call_.rows[row].end - seen_.first + kLanes - 1) / kLanes * kLanes;
  }
  bool is_empty(int row) const { return call_.rows[row].begin >= call_.rows[row].end; }

  // A row's score, or weight, of a cell; `scores`: [rows, seen_.stride], each from its
  // first_cell().
  template <class Float>
  Float* score_at(Float* scores, int row, int cell) const {
    return scores + at(row, seen_.stride) + (cell - first_cell(row));
  }

  // Calls function.operator()<n>(first) for the rows of a head that see some of the tile's cells,
  // up to four neighbours at a time, with the same first_cell().
  template <class Function>
  void each_rows(int head, int cell, const Function& function) const {
    const int end = end_row(head);
    for (int r = begin_row(head); r < end;) {
      int n = 0;
      while (n < kRowsAtOnce && r + n < end && sees(r + n, cell) &&
             first_cell(r + n) == first_cell(r)) {
        ++n;
      }
      with_count(n, [&]<int kN>() { function.template operator()<kN>(r); });
      r += n > 0 ? n : 1;
    }
  }
  template <class Function>
  static void with_count(int n, const Function& function) {
    if (n == 1) function.template operator()<1>();
    if (n == 2) function.template operator()<2>();
    if (n == 3) function.template operator()<3>();
    if (n == 4) function.template operator()<4>();
  }

  // sums[i] += the sum over k of a[i, k] * lanes(k), from k to k.
  template <int kN, class Lanes>
  [[gnu::always_inline]] static void multiply(const float* a, std::size_t a_stride, int n_k,
                                              const Lanes& lanes, float* sums,
                                              std::size_t sum_stride, bool from_zero) {
    Floats sum[kN];
#pragma GCC unroll 4
    for (int i = 0; i < kN; ++i) {
      sum[i] = from_zero ? S::set_float(0.0F) : S::load_floats(sums + at(i, sum_stride));
    }
    for (int k = 0; k < n_k; ++k) {
      const Floats b = lanes(k);
#pragma GCC unroll 4
      for (int i = 0; i < kN; ++i) {
        sum[i] = S::fma(S::set_float(a[at(i, a_stride) + static_cast<std::size_t>(k)]), b, sum[i]);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < kN; ++i) S::store_floats(sums + at(i, sum_stride), sum[i]);
  }

  const Attention& call_;
  const AttentionExtent& seen_;
  const std::uint8_t* cells_[kLanes] = {};  // of a tile; behind the last its first again
};

}  // namespace outrider::kernels
