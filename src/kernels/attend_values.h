// AttentionStep::kValues, for kernels/attend.h.
#pragma once

#include "kernels/attend_tiles.h"

namespace outrider::kernels {

template <class S>
class AttendValues : AttendTiles<S> {
  using Tiles = AttendTiles<S>;
  using Tiles::at;
  using Tiles::call_;
  using Tiles::cells_;
  using Tiles::count;
  using Tiles::kLanes;
  using Tiles::score_stride_;
  using Tiles::seen_;

 public:
  // `weights` and `divisors` as AttendWeights left them. `own`: [attention_own()].
  AttendValues(const Attention& call, const float* weights, const float* divisors, float* own)
      : Tiles(call), weights_(weights), divisors_(divisors), values_(own) {
    sums_ = values_ + at(kLanes, kAttentionBlock);
  }

  // For the blocks of dimensions from `begin` up to `end`.
  void run(int begin, int end) {
    begin_ = begin;
    with_reader<S>(call_.values.type, [&]<class Reader>() { add<Reader>(end); });
  }

 private:
  // Some dimensions of a head.
  struct Block {
    int head = 0;
    int first = 0;  // dimension
    int size = 0;
    std::size_t at = 0;     // the head's bytes in a cell
    float* sums = nullptr;  // of the head's rows, [rows, kAttentionBlock]
  };

  Block block(int i) const {
    const int blocks = Tiles::blocks_of(call_.values);
    const int head = i / blocks;
    const int first = i % blocks * kAttentionBlock;
    const int left = call_.values.size - first;
    return {.head = head,
            .first = first,
            .size = left < kAttentionBlock ? left : kAttentionBlock,
            .at = at(head, call_.values.head_stride),
            .sums = sums_ + at(rows_before(i) - rows_before(begin_), kAttentionBlock)};
  }
  // Of all blocks before.
  int rows_before(int block) const {
    const int blocks = Tiles::blocks_of(call_.values);
    const int begin = Tiles::begin_row(block / blocks);
    return begin * blocks + block % blocks * (Tiles::end_row(block / blocks) - begin);
  }

  // Few rows take a tile's values as they are read, many from memory, so that they are read once.
  template <class Reader>
  void add(int end) {
    for (int i = begin_; i < end; ++i) {
      each_row(block(i), [this](const Block& b, int r) { clear(sums(b, r)); });
    }
    const auto lines = Tiles::template lines_of<Reader>(call_.values, begin_, end);
    each_tile(lines, end - begin_, [&](int cell, int i, auto& ahead) {
      const Block b = block(begin_ + i);
      const bool few = Tiles::end_row(b.head) - Tiles::begin_row(b.head) <= Tiles::kRowsAtOnce;
      if (!few) read_values<Reader>(b, cell);
      Tiles::each_rows(b.head, cell, [&]<int kN>(int r) {
        if (few) {
          add_rows<kN>(b, r, cell, read_lanes<Reader>(b), &ahead);
        } else {
          add_rows<kN>(b, r, cell, stored_lanes(), &ahead);
        }
      });
    });
    for (int i = begin_; i < end; ++i) {
      each_row(block(i), [this](const Block& b, int r) {
        if (is_broken(sums(b, r), kAttentionBlock)) add_seen_cells<Reader>(b, r);
        write(b, r);
      });
    }
  }

  template <class Function>
  void each_row(const Block& block, const Function& function) const {
    for (int r = Tiles::begin_row(block.head); r < Tiles::end_row(block.head); ++r) {
      function(block, r);
    }
  }
  template <class Function>
  void each_tile(const typename Tiles::Lines& lines, int n, const Function& function) {
    Tiles::each_tile(call_.values, seen_.first, seen_.end, lines, n, function);
  }

  // `lanes`(c, i): values of cell c of the tile, from dimension i of the block on.
  template <int kN, class Lanes>
  [[gnu::always_inline]] void add_rows(const Block& block, int r, int cell, const Lanes& lanes,
                                       typename Tiles::Ahead* ahead) {
    for (int i = 0; i < block.size; i += kLanes) {
      Tiles::template multiply<kN>(
          weights(r, cell), score_stride_, count(cell),
          [&](int c) {
            ahead->next();
            return lanes(c, i);
          },
          sums(block, r) + i, kAttentionBlock, /*from_zero=*/false);
    }
  }

  template <class Reader>
  auto read_lanes(const Block& block) const {
    return [this, block](int c, int i) {
      return Reader::read(cells_[c] + block.at, block.first + i, call_.values.size);
    };
  }
  auto stored_lanes() const {
    return [this](int c, int i) { return S::load_floats(values_ + at(c, kAttentionBlock) + i); };
  }

  // The tile's to values_.
  template <class Reader>
  void read_values(const Block& block, int cell) {
    const auto lanes = read_lanes<Reader>(block);
    for (int c = 0; c < count(cell); ++c) {
      for (int i = 0; i < block.size; i += kLanes) {
        S::store_floats(values_ + at(c, kAttentionBlock) + i, lanes(c, i));
      }
    }
  }

  // Whether one of them is an infinity or a NaN. A sum that was one never becomes a number again,
  // so looking at the sums tells whether such a value was among those added.
  static bool is_broken(const float* x, std::size_t n) {
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x[i]) & 0x7FFFFFFFU;
      largest = bits > largest ? bits : largest;
    }
    return largest >= 0x7F800000U;
  }

  // A weight of zero times an infinity is no zero: what one request has broken must not reach rows
  // that do not see it. A row whose sums are broken is summed again, from what it sees alone.
  template <class Reader>
  void add_seen_cells(const Block& block, int r) {
    clear(sums(block, r));
    each_tile({}, 1, [&](int cell, int, auto&) {
      if (!Tiles::sees(r, cell)) return;
      read_values<Reader>(block, cell);
      for (int c = 0; c < count(cell); ++c) {
        const float* weight = weights(r, cell) + c;
        if (*weight == 0.0F) continue;
        for (int i = 0; i < block.size; i += kLanes) {
          Tiles::template multiply<1>(
              weight, 1, 1, [&](int) { return stored_lanes()(c, i); }, sums(block, r) + i,
              kAttentionBlock, /*from_zero=*/false);
        }
      }
    });
  }

  void write(const Block& block, int r) const {
    const float divisor = divisors_[r];
    const float inverse = divisor == 0.0F ? 0.0F : 1.0F / divisor;
    float* out = call_.rows[r].out + block.first;
    for (int i = 0; i < block.size; ++i) out[i] = sums(block, r)[i] * inverse;
  }

  static void clear(float* sums) {
    for (int i = 0; i < kAttentionBlock; ++i) sums[i] = 0.0F;
  }
  const float* weights(int r, int cell) const {
    return weights_ + at(r, score_stride_) + (cell - seen_.first);
  }
  float* sums(const Block& block, int r) const {
    return block.sums + at(r - Tiles::begin_row(block.head), kAttentionBlock);
  }

  const float* weights_;
  const float* divisors_;
  float* values_;  // of a tile, [kLanes, kAttentionBlock]
  float* sums_;    // of the part's blocks, [blocks, rows of the head, kAttentionBlock]
  int begin_ = 0;  // block of the part
};

}  // namespace outrider::kernels
