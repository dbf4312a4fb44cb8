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

  explicit AttendTiles(const Attention& call)
      : call_(call), seen_(seen_range(call)), score_stride_(padded(seen_.end - seen_.first)) {}

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

  // What each_tile() fetches ahead of each cell: `n` times `bytes`, from `at` on and `step` apart.
  struct Lines {
    std::size_t at = 0;
    std::size_t bytes = 0;
    std::size_t step = 0;
    int n = 1;
  };

  // Those of the blocks of dimensions from `begin` up to `end`: in a cache heads lie side by side.
  // Where they do not, of whole heads.
  template <class Reader>
  static Lines lines_of(const CacheHeads& heads, int begin, int end) {
    const std::size_t head = Reader::bytes(heads.size);
    const int first = begin / blocks_of(heads);
    const int last = (end - 1) / blocks_of(heads);
    if (heads.head_stride != head) {
      return {at(first, heads.head_stride), head, heads.head_stride, last - first + 1};
    }
    const auto offset = [&](int block) {
      const int d = block % blocks_of(heads) * kAttentionBlock;
      return at(block / blocks_of(heads), head) + Reader::bytes(d);
    };
    return {offset(begin), offset(end) - offset(begin), 0, 1};
  }

  // Calls function(cell, i) for the first cell of each tile from `begin` up to `end`, for each i
  // below n, when cells_ says where the tile lies. What is fetched ahead is fetched in as many
  // parts: more lines at once than a processor can wait for would hold it up.
  template <class Function>
  void each_tile(const CacheHeads& heads, int begin, int end, const Lines& lines, int n,
                 const Function& function) {
    for (int i = 0; i < kTilesAhead; ++i) {
      fetch(heads, begin + i * kLanes, begin + (i + 1) * kLanes, end, lines);
    }
    for (int cell = begin; cell < end; cell += kLanes) {
      for (int c = 0; c < kLanes; ++c) {
        cells_[c] = bytes_of(heads, c < count(cell) ? cell + c : cell);
      }
      const int ahead = cell + kTilesAhead * kLanes;
      int fetched = 0;
      for (int i = 0; i < n; ++i) {
        const int next = kLanes * (i + 1) / n;
        fetch(heads, ahead + fetched, ahead + next, end, lines);
        fetched = next;
        function(cell, i);
      }
    }
  }

  static int blocks_of(const CacheHeads& heads) {
    return (heads.size + kAttentionBlock - 1) / kAttentionBlock;
  }

  // Processors do not foresee where the next cell lies. (Inlined always: GCC 12 takes a function
  // that only fetches for one without effect, and leaves out its calls.)
  [[gnu::always_inline]] void fetch(const CacheHeads& heads, int cell, int last, int end,
                                    const Lines& lines) const {
    for (int c = cell; c < last && c < end; ++c) {
      const std::uint8_t* in = bytes_of(heads, c) + lines.at;
      for (int i = 0; i < lines.n; ++i, in += lines.step) {
        const std::size_t into = reinterpret_cast<std::uintptr_t>(in) % 64;
        for (std::size_t b = 0; b < into + lines.bytes; b += 64) {
          __builtin_prefetch(in - into + b, 0, 2);
        }
      }
    }
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
    return call_.rows[row].begin < cell + kLanes && call_.rows[row].end > cell;
  }

  // Calls function.operator()<n>(first) for the rows of a head that see some of the tile's cells,
  // up to four neighbours at a time.
  template <class Function>
  void each_rows(int head, int cell, const Function& function) const {
    const int end = end_row(head);
    for (int r = begin_row(head); r < end;) {
      int n = 0;
      while (n < kRowsAtOnce && r + n < end && sees(r + n, cell)) ++n;
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
  const SeenRange seen_;
  const std::size_t score_stride_;
  const std::uint8_t* cells_[kLanes] = {};  // of a tile; behind the last its first again
};

}  // namespace outrider::kernels
