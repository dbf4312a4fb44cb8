// InstructionSet::attend (kernels/attention.h) for one instruction set `S` of kernels/strip.h.
//
// Idea. Cells are worked on in tiles of as many as a vector of `S` has lanes. A tile of keys is
// made floats and transposed once for all rows, so that a step of several tokens, and the heads of
// a group, share that; four rows at a time have the scores of a tile in registers. Values are taken
// the same way, with the dimensions of a head in the lanes. Both are the same product, of numbers
// that are broadcast and rows of lanes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"
#include "kernels/cache_cells.h"
#include "kernels/quantise.h"

namespace outrider::kernels {

inline constexpr float kMinusInfinity = -__builtin_huge_valf();

// e^x for x <= 0, within 2 units in the last place; zero below -87.7. x = n ln 2 + r, and e^r is a
// polynomial (its Taylor series to the 7th power, |r| <= 0.35).
template <class S>
typename S::Floats exponential(typename S::Floats x) {
  constexpr float kCoefficients[] = {
      1.38888889e-3F, 8.33333333e-3F, 4.16666667e-2F, 1.66666667e-1F, 0.5F, 1.0F, 1.0F};
  x = S::largest(S::set_float(-88.0F), x);  // a NaN stays one
  const auto shifted = S::fma(x, S::set_float(1.44269504F), S::set_float(kRounding));
  const auto n = S::add(shifted, S::set_float(-kRounding));
  auto r = S::fma(n, S::set_float(-0.693145752F), x);
  r = S::fma(n, S::set_float(-1.42860677e-6F), r);
  auto p = S::set_float(1.98412698e-4F);
  for (const float coefficient : kCoefficients) p = S::fma(p, r, S::set_float(coefficient));
  return S::multiply(p, S::power_of_two(shifted));
}

template <class S>
class Attend {
  using Floats = typename S::Floats;
  static constexpr int kLanes = S::kRows;
  static constexpr int kRowsAtOnce = 4;
  // How far ahead of the tile in work the cache is fetched. Left to the processor, a draft's pass
  // behind 450 tokens took 7.3 ms instead of 4.3; 1, 2 and 4 are alike, 8 is 10 % slower (Zen 4).
  static constexpr int kTilesAhead = 2;

 public:
  Attend(const Attention& call, float* scratch) : call_(call) {
    for (int r = 0; r < call.n_rows; ++r) {
      const QueryRow& row = call.rows[r];
      if (row.begin >= row.end) continue;
      first_ = end_ == 0 || row.begin < first_ ? row.begin : first_;
      end_ = row.end > end_ ? row.end : end_;
    }
    key_stride_ = padded(call.keys.size);
    value_stride_ = padded(call.values.size);
    score_stride_ = padded(end_ - first_);
    const auto take = [&scratch](std::size_t rows, std::size_t stride) {
      float* at = scratch;
      scratch += rows * stride;
      return at;
    };
    const auto rows = static_cast<std::size_t>(call.n_rows);
    const std::size_t widest = key_stride_ > value_stride_ ? key_stride_ : value_stride_;
    queries_ = take(rows, key_stride_);
    sums_ = take(rows, value_stride_);
    scores_ = take(rows, score_stride_);
    values_ = take(kLanes, widest);
    columns_ = take(widest, kLanes);
    mask_ = take(1, 64);
    divisors_ = take(rows, 1);
  }

  void run() {
    for (int r = 0; r < call_.n_rows; ++r) {
      for (int d = 0; d < call_.keys.size; ++d) {
        queries_[at(r, key_stride_) + d] = call_.rows[r].query[d] * call_.scale;
      }
      for (std::size_t d = 0; d < value_stride_; ++d) sums_[at(r, value_stride_) + d] = 0.0F;
      for (std::size_t c = 0; c < score_stride_; ++c) {
        scores_[at(r, score_stride_) + c] = kMinusInfinity;
      }
    }
    with_reader<S>(call_.keys.type, [this]<class Reader>() { score_cells<Reader>(); });
    for (int r = 0; r < call_.n_rows; ++r) weigh(r);
    with_reader<S>(call_.values.type, [this]<class Reader>() {
      add_cells<Reader>();
      if (forget_broken_sums()) add_seen_cells<Reader>();
    });
    for (int r = 0; r < call_.n_rows; ++r) {
      const float divisor = divisors_[r];
      const float inverse = divisor == 0.0F ? 0.0F : 1.0F / divisor;
      for (int d = 0; d < call_.values.size; ++d) {
        call_.rows[r].out[d] = sums_[at(r, value_stride_) + d] * inverse;
      }
    }
  }

 private:
  static std::size_t padded(int n) { return padded_lanes<S>(n); }
  static std::size_t at(int row, std::size_t stride) {
    return static_cast<std::size_t>(row) * stride;
  }
  // From here on `cell` is a place among the cells of the call.
  std::size_t cell_at(int cell) const {
    return static_cast<std::size_t>(call_.cells != nullptr ? call_.cells[cell] : cell);
  }
  int count(int cell) const { return end_ - cell < kLanes ? end_ - cell : kLanes; }
  bool sees(int row, int cell) const {
    return call_.rows[row].begin < cell + kLanes && call_.rows[row].end > cell;
  }

  // Calls function.operator()<n>(first) for the rows that see some of the tile's cells, up to four
  // neighbours at a time.
  template <class Function>
  void each_rows(int cell, const Function& function) const {
    for (int r = 0; r < call_.n_rows;) {
      int n = 0;
      while (n < kRowsAtOnce && r + n < call_.n_rows && sees(r + n, cell)) ++n;
      if (n == 1) function.template operator()<1>(r);
      if (n == 2) function.template operator()<2>(r);
      if (n == 3) function.template operator()<3>(r);
      if (n == 4) function.template operator()<4>(r);
      r += n > 0 ? n : 1;
    }
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

  // --- Scores

  template <class Reader>
  void score_cells() {
    const int size = call_.keys.size;
    each_tile<Reader>(call_.keys, [&](int cell) {
      read_columns<S, Reader>(cells_, size, columns_);
      each_rows(cell, [&]<int kN>(int row) {
        multiply<kN>(
            queries_ + at(row, key_stride_), key_stride_, size,
            [this](int d) { return S::load_floats(columns_ + at(d, kLanes)); },
            scores_ + at(row, score_stride_) + static_cast<std::size_t>(cell - first_),
            score_stride_, /*from_zero=*/true);
        for (int i = 0; i < kN; ++i) mask_scores(row + i, cell);
      });
    });
  }

  // Cells that the row does not see get minus infinity, whatever their score.
  void mask_scores(int row, int cell) {
    const QueryRow& query = call_.rows[row];
    float* scores = scores_ + at(row, score_stride_) + static_cast<std::size_t>(cell - first_);
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
    const std::uint16_t* halves = query.mask + cell_at(cell);
    alignas(64) std::uint16_t apart[kLanes] = {};
    const int n = query.end - cell < kLanes ? query.end - cell : kLanes;
    // Cells that lie apart, and the last ones, behind which may be the end of the mask.
    if (n < kLanes || cell_at(cell + kLanes - 1) - cell_at(cell) != kLanes - 1) {
      for (int c = 0; c < n; ++c) apart[c] = query.mask[cell_at(cell + c)];
      halves = apart;
    }
    S::store_floats(mask_, S::halves(reinterpret_cast<const std::uint8_t*>(halves)));
    masked_by_ = query.mask;
    masked_at_ = cell;
    masked_to_ = query.end;
  }

  // --- Weights

  void weigh(int row) {
    const QueryRow& query = call_.rows[row];
    float* scores = scores_ + at(row, score_stride_);
    Floats largest = S::set_float(query.has_sink ? query.sink : kMinusInfinity);
    for (std::size_t c = 0; c < score_stride_; c += kLanes) {
      largest = S::largest(S::load_floats(scores + c), largest);
    }
    alignas(64) float lanes[kLanes];
    S::store_floats(lanes, largest);
    float most = largest_of(lanes);
    if (most == kMinusInfinity) most = 0.0F;  // sees nothing: all weights are to be zero
    const Floats minus = S::set_float(-most);
    for (std::size_t c = 0; c < score_stride_; c += kLanes) {
      const Floats score = S::add(S::load_floats(scores + c), minus);
      S::store_floats(scores + c, exponential<S>(score));
    }
    divisors_[row] = 0.0F;
    if (!query.has_sink) return;
    S::store_floats(lanes, exponential<S>(S::set_float(query.sink - most)));
    divisors_[row] = lanes[0];
  }

  // Four at a time: each comparison waits for the one before.
  static float largest_of(const float* lanes) {
    float most[4] = {lanes[0], lanes[1], lanes[2], lanes[3]};
    for (int i = 4; i < kLanes; i += 4) {
      for (int j = 0; j < 4; ++j) most[j] = lanes[i + j] > most[j] ? lanes[i + j] : most[j];
    }
    const float low = most[0] > most[1] ? most[0] : most[1];
    const float high = most[2] > most[3] ? most[2] : most[3];
    return low > high ? low : high;
  }

  // --- Values

  // Few rows take a cell's values as they are read, many from memory, so that they are read once.
  template <class Reader>
  void add_cells() {
    const bool few = call_.n_rows <= kRowsAtOnce;
    each_tile<Reader>(call_.values, [&](int cell) {
      if (!few) read_values<Reader>(cell);
      each_rows(cell, [&]<int kN>(int row) {
        add_weights<kN>(row, cell);
        if (few) {
          add_rows<kN>(row, cell, read_lanes<Reader>());
        } else {
          add_rows<kN>(row, cell, stored_lanes());
        }
      });
    });
  }

  // From cell to cell: each addition waits for the one before, and goes on beside the products.
  template <int kN>
  void add_weights(int row, int cell) {
    float sum[kN];
    for (int i = 0; i < kN; ++i) sum[i] = divisors_[row + i];
    for (int c = 0; c < kLanes; ++c) {
#pragma GCC unroll 4
      for (int i = 0; i < kN; ++i) sum[i] += weights(row + i, cell)[c];
    }
    for (int i = 0; i < kN; ++i) divisors_[row + i] = sum[i];
  }

  // `lanes`(c, d): values of cell c of the tile, from dimension d on.
  template <int kN, class Lanes>
  [[gnu::always_inline]] void add_rows(int row, int cell, const Lanes& lanes) {
    for (int d = 0; d < call_.values.size; d += kLanes) {
      multiply<kN>(
          weights(row, cell), score_stride_, count(cell), [&](int c) { return lanes(c, d); },
          sums_ + at(row, value_stride_) + d, value_stride_, /*from_zero=*/false);
    }
  }

  template <class Reader>
  auto read_lanes() const {
    return [this](int c, int d) { return Reader::read(cells_[c], d, call_.values.size); };
  }
  auto stored_lanes() const {
    return [this](int c, int d) { return S::load_floats(values_ + at(c, value_stride_) + d); };
  }

  // The tile's to values_.
  template <class Reader>
  void read_values(int cell) {
    const auto lanes = read_lanes<Reader>();
    for (int c = 0; c < count(cell); ++c) {
      for (int d = 0; d < call_.values.size; d += kLanes) {
        S::store_floats(values_ + at(c, value_stride_) + d, lanes(c, d));
      }
    }
  }

  const float* weights(int row, int cell) const {
    return scores_ + at(row, score_stride_) + static_cast<std::size_t>(cell - first_);
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
  // that do not see it. Rows whose sums are broken are summed again, from what they see alone.
  // True: there are such rows.
  bool forget_broken_sums() {
    bool any = false;
    for (int r = 0; r < call_.n_rows; ++r) {
      float* sums = sums_ + at(r, value_stride_);
      const bool again = is_broken(sums, value_stride_);
      queries_[at(r, key_stride_)] = again ? 1.0F : 0.0F;  // the query is done with
      if (!again) continue;
      any = true;
      for (std::size_t d = 0; d < value_stride_; ++d) sums[d] = 0.0F;
    }
    return any;
  }

  template <class Reader>
  void add_seen_cells() {
    each_tile<Reader>(call_.values, [&](int cell) {
      read_values<Reader>(cell);
      const bool broken = is_broken(values_, at(count(cell), value_stride_));
      for (int row = 0; row < call_.n_rows; ++row) {
        if (queries_[at(row, key_stride_)] == 0.0F || !sees(row, cell)) continue;
        if (broken) {
          add_seen_by(row, cell);
        } else {
          add_rows<1>(row, cell, stored_lanes());
        }
      }
    });
  }
  void add_seen_by(int row, int cell) {
    for (int c = 0; c < count(cell); ++c) {
      const float* weight = weights(row, cell) + c;
      if (*weight == 0.0F) continue;
      for (int d = 0; d < call_.values.size; d += kLanes) {
        multiply<1>(
            weight, 1, 1, [&](int) { return stored_lanes()(c, d); },
            sums_ + at(row, value_stride_) + d, value_stride_, /*from_zero=*/false);
      }
    }
  }

  // --- The cells of a tile

  // Calls function(cell) for the first cell of each tile, when the tile is in cells_.
  template <class Reader, class Function>
  void each_tile(const CacheHead& head, const Function& function) {
    for (int i = 0; i < kTilesAhead; ++i) fetch<Reader>(head, first_ + i * kLanes);
    for (int cell = first_; cell < end_; cell += kLanes) {
      fetch<Reader>(head, cell + kTilesAhead * kLanes);
      for (int c = 0; c < kLanes; ++c)
        cells_[c] = bytes_of(head, c < count(cell) ? cell + c : cell);
      function(cell);
    }
  }
  const std::uint8_t* bytes_of(const CacheHead& head, int cell) const {
    return head.bytes + cell_at(cell) * head.stride;
  }

  // A head's part of a cell is a few lines of memory, apart from the next cell's: processors do not
  // foresee them. (Inlined always: GCC 12 takes a function that only fetches for one without
  // effect, and leaves out its calls.)
  template <class Reader>
  [[gnu::always_inline]] void fetch(const CacheHead& head, int cell) const {
    const std::size_t bytes = Reader::bytes(head.size);
    for (int c = cell; c < cell + kLanes && c < end_; ++c) {
      const std::uint8_t* in = bytes_of(head, c);
      const std::size_t into = reinterpret_cast<std::uintptr_t>(in) % 64;
      for (std::size_t i = 0; i < into + bytes; i += 64) __builtin_prefetch(in - into + i, 0, 2);
    }
  }

  const Attention& call_;
  int first_ = 0;  // cells that some row may see
  int end_ = 0;
  std::size_t key_stride_;
  std::size_t value_stride_;
  std::size_t score_stride_;
  float* queries_;   // [n_rows, key_stride_], scaled
  float* sums_;      // [n_rows, value_stride_]
  float* scores_;    // [n_rows, score_stride_], of cells from first_ on; then their weights
  float* values_;    // of a tile, [kLanes, value_stride_]
  float* columns_;   // a tile of keys, [key_stride_, kLanes]
  float* mask_;      // of the tile, [kLanes]
  float* divisors_;  // the sums of the weights, [n_rows]
  const std::uint8_t* cells_[kLanes] = {};  // of a tile; behind the last its first again
  const std::uint16_t* masked_by_ = nullptr;
  int masked_at_ = -1;
  int masked_to_ = -1;
};

template <class S>
void attend(const Attention& call, float* scratch) {
  Attend<S>(call, scratch).run();
}

}  // namespace outrider::kernels
