// The sums of values of an attention, and what its rows become, for kernels/attend.h.
#pragma once

#include "kernels/attend_tiles.h"

namespace outrider::kernels {

template <class S>
class AttendValues : AttendTiles<S> {
  using Tiles = AttendTiles<S>;
  using Tiles::at;
  using Tiles::begin_row;
  using Tiles::call_;
  using Tiles::cells_;
  using Tiles::count;
  using Tiles::end_row;
  using Tiles::kLanes;
  using Tiles::seen_;

 public:
  // `weights` and `divisors` as AttendWeights left them. `rest`: what attention_scratch() has for
  // it.
  AttendValues(const Attention& call, const AttentionExtent& seen, const float* weights,
               const float* divisors, float* rest)
      : Tiles(call, seen),
        weights_(weights),
        divisors_(divisors),
        stride_(Tiles::padded(call.values.size)),
        sums_(rest),
        values_(sums_ + at(call.n_rows, stride_)) {}

  void run() {
    with_reader<S>(call_.values.type, [this]<class Reader>() { add<Reader>(); });
  }

 private:
  // Few rows take a tile's values as they are read, many from memory, so that they are read once.
  template <class Reader>
  void add() {
    for (int r = 0; r < call_.n_rows; ++r) clear(sums(r));
    const auto stretch = Tiles::stretch_of(call_.values, seen_.first, seen_.end);
    const auto keys = Tiles::stretch_of(call_.keys, seen_.end, call_.later);
    Tiles::each_tile(stretch, keys, [&](int cell, int head, auto& ahead) {
      const bool few = end_row(head) - begin_row(head) <= Tiles::kRowsAtOnce;
      if (!few) read_values<Reader>(head, cell);
      Tiles::each_rows(head, cell, [&]<int kN>(int r) {
        if (few) {
          add_rows<kN>(r, cell, read_lanes<Reader>(head), &ahead);
        } else {
          add_rows<kN>(r, cell, stored_lanes(), &ahead);
        }
      });
    });
    for (int head = 0; head < call_.n_heads(); ++head) {
      for (int r = begin_row(head); r < end_row(head); ++r) {
        if (is_broken(sums(r), stride_)) add_seen_cells<Reader>(head, r);
        write(r);
      }
    }
  }

  // `lanes`(c, d): values of cell c of the tile, from dimension d on.
  template <int kN, class Lanes>
  [[gnu::always_inline]] void add_rows(int r, int cell, const Lanes& lanes,
                                       typename Tiles::Ahead* ahead) {
    for (int d = 0; d < call_.values.size; d += kLanes) {
      Tiles::template multiply<kN>(
          weights(r, cell), seen_.stride, count(cell),
          [&](int c) {
            ahead->next();
            return lanes(c, d);
          },
          sums(r) + d, stride_, /*from_zero=*/false);
    }
  }

  template <class Reader>
  auto read_lanes(int head) const {
    return [this, head_at = at(head, call_.values.head_stride)](int c, int d) {
      return Reader::read(cells_[c] + head_at, d, call_.values.size);
    };
  }
  auto stored_lanes() const {
    return [this](int c, int d) { return S::load_floats(values_ + at(c, stride_) + d); };
  }

  // The tile's to values_.
  template <class Reader>
  void read_values(int head, int cell) {
    const auto lanes = read_lanes<Reader>(head);
    for (int c = 0; c < count(cell); ++c) {
      for (int d = 0; d < call_.values.size; d += kLanes) {
        S::store_floats(values_ + at(c, stride_) + d, lanes(c, d));
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
  void add_seen_cells(int head, int r) {
    clear(sums(r));
    const auto stretch = Tiles::stretch_of(call_.values, seen_.first, seen_.end);
    Tiles::each_tile(stretch, stretch, [&](int cell, int of, auto& /*ahead*/) {
      if (of != head || !Tiles::sees(r, cell)) return;
      read_values<Reader>(head, cell);
      for (int c = 0; c < count(cell); ++c) {
        const float* weight = weights(r, cell) + c;
        if (*weight == 0.0F) continue;
        for (int d = 0; d < call_.values.size; d += kLanes) {
          Tiles::template multiply<1>(
              weight, 1, 1, [&](int) { return stored_lanes()(c, d); }, sums(r) + d, stride_,
              /*from_zero=*/false);
        }
      }
    });
  }

  void write(int r) const {
    const float divisor = call_.rows[r].part != nullptr ? 1.0F : divisors_[r];
    const float inverse = divisor == 0.0F ? 0.0F : 1.0F / divisor;
    for (int d = 0; d < call_.values.size; ++d) call_.rows[r].out[d] = sums(r)[d] * inverse;
  }
  void clear(float* sums) const {
    for (std::size_t d = 0; d < stride_; ++d) sums[d] = 0.0F;
  }

  const float* weights(int r, int cell) const { return Tiles::score_at(weights_, r, cell); }
  float* sums(int r) const { return sums_ + at(r, stride_); }

  const float* weights_;
  const float* divisors_;
  std::size_t stride_;
  float* sums_;    // [rows, stride_]
  float* values_;  // of a tile, [kLanes, stride_]
};

}  // namespace outrider::kernels
