// The scores of an attention, for kernels/attend.h.
#pragma once

#include "kernels/attend_tiles.h"

namespace outrider::kernels {

inline constexpr float kMinusInfinity = -__builtin_huge_valf();

template <class S>
class AttendScores : AttendTiles<S> {
  using Tiles = AttendTiles<S>;
  using Tiles::at;
  using Tiles::call_;
  using Tiles::cells_;
  using Tiles::kLanes;
  using Tiles::seen_;

 public:
  // `scores` as AttendTiles says. `rest`: what attention_scratch() has for it.
  AttendScores(const Attention& call, const AttentionExtent& seen, float* scores, float* rest)
      : Tiles(call, seen),
        scores_(scores),
        key_stride_(Tiles::padded(call.keys.size)),
        queries_(rest) {
    columns_ = queries_ + at(call_.n_rows, key_stride_);
    mask_ = columns_ + at(kLanes, key_stride_);
  }

  void run() {
    for (int r = 0; r < call_.n_rows; ++r) {
      for (int d = 0; d < call_.keys.size; ++d) {
        queries_[at(r, key_stride_) + d] = call_.rows[r].query[d] * call_.scale;
      }
    }
    with_reader<S>(call_.keys.type, [this]<class Reader>() { score<Reader>(); });
  }

 private:
  template <class Reader>
  void score() {
    const CacheHeads& keys = call_.keys;
    const auto stretch = Tiles::stretch_of(keys, seen_.first, seen_.end);
    const auto values = Tiles::stretch_of(call_.values, seen_.first, seen_.end);
    Tiles::fetch_first(stretch);
    Tiles::each_tile(stretch, values, [&](int cell, int head, auto& ahead) {
      read_columns<S, Reader>(cells_, at(head, keys.head_stride), keys.size, columns_);
      Tiles::each_rows(head, cell, [&]<int kN>(int r) {
        Tiles::template multiply<kN>(
            queries_ + at(r, key_stride_), key_stride_, keys.size,
            [this, &ahead](int d) {
              ahead.next();
              return S::load_floats(columns_ + at(d, kLanes));
            },
            scores(r, cell), seen_.stride, /*from_zero=*/true);
        for (int i = 0; i < kN; ++i) {
          mask_scores(call_.rows[r + i], cell, scores(r + i, cell));
        }
      });
    });
  }

  float* scores(int r, int cell) const { return Tiles::score_at(scores_, r, cell); }

  // Cells that the row does not see get minus infinity, whatever their score.
  void mask_scores(const QueryRow& query, int cell, float* scores) {
    if (query.mask != nullptr) {
      if (query.mask != masked_by_ || cell != masked_at_ || query.end != masked_to_) {
        read_mask(query, cell);
      }
      for (int c = 0; c < kLanes; ++c) {
        const float sum = scores[c] + mask_[c];
        scores[c] = mask_[c] == kMinusInfinity ? kMinusInfinity : sum;
      }
    }
    for (int c = 0; c < query.begin - cell && c < kLanes; ++c) scores[c] = kMinusInfinity;
    for (int c = query.end > cell ? query.end - cell : 0; c < kLanes; ++c) {
      scores[c] = kMinusInfinity;
    }
  }

  void read_mask(const QueryRow& query, int cell) {
    const auto place = [this](int c) { return call_.cells != nullptr ? call_.cells[c] : c; };
    const std::uint16_t* halves = query.mask + place(cell);
    alignas(64) std::uint16_t apart[kLanes] = {};
    const int n = query.end - cell < kLanes ? query.end - cell : kLanes;
    // Cells that lie apart, and the last ones, behind which may be the end of the mask.
    if (n < kLanes || place(cell + kLanes - 1) - place(cell) != kLanes - 1) {
      for (int c = 0; c < n; ++c) apart[c] = query.mask[place(cell + c)];
      halves = apart;
    }
    S::store_floats(mask_, S::halves(reinterpret_cast<const std::uint8_t*>(halves)));
    masked_by_ = query.mask;
    masked_at_ = cell;
    masked_to_ = query.end;
  }

  float* scores_;
  std::size_t key_stride_;
  float* queries_;  // [rows, key_stride_], scaled
  float* columns_;  // a tile of keys, [key_stride_, kLanes]
  float* mask_;     // of the tile, [kLanes]
  const std::uint16_t* masked_by_ = nullptr;
  int masked_at_ = -1;
  int masked_to_ = -1;
};

}  // namespace outrider::kernels
