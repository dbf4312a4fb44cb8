// The weights of an attention, which scores become, and their sums, for kernels/attend.h.
#pragma once

#include "kernels/attend_scores.h"
#include "kernels/attend_tiles.h"
#include "kernels/quantise.h"

namespace outrider::kernels {

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

// e^(x - largest), for x <= largest.
template <class S>
float weight_of(float x, float largest) {
  if (x == largest) return 1.0F;
  alignas(64) float lanes[S::kRows];
  S::store_floats(lanes, exponential<S>(S::set_float(x - largest)));
  return lanes[0];
}

template <class S>
class AttendWeights : AttendTiles<S> {
  using Tiles = AttendTiles<S>;
  using Floats = typename S::Floats;
  using Tiles::at;
  using Tiles::call_;
  using Tiles::kLanes;
  using Tiles::kRowsAtOnce;
  using Tiles::seen_;

 public:
  // `scores` as AttendTiles says; `divisors`: [rows].
  AttendWeights(const Attention& call, const AttentionExtent& seen, float* scores, float* divisors)
      : Tiles(call, seen), scores_(scores), divisors_(divisors) {}

  void run() {
    for (int r = 0; r < call_.n_rows;) {
      int n = 1;
      while (n < kRowsAtOnce && r + n < call_.n_rows && n_scores(r + n) == n_scores(r)) ++n;
      for (int i = 0; i < n; ++i) weigh(r + i);
      Tiles::with_count(n, [&]<int kN>() { sum<kN>(r); });
      r += n;
    }
  }

 private:
  // In whole tiles: minus infinity, then zero, for cells that the row does not see.
  std::size_t n_scores(int r) const {
    if (Tiles::is_empty(r)) return 0;
    return static_cast<std::size_t>(Tiles::end_cell(r) - Tiles::first_cell(r));
  }

  void weigh(int r) {
    const QueryRow& query = call_.rows[r];
    float* scores = scores_ + at(r, seen_.stride);
    Floats largest = S::set_float(query.has_sink ? query.sink : kMinusInfinity);
    for (std::size_t c = 0; c < n_scores(r); c += kLanes) {
      largest = S::largest(S::load_floats(scores + c), largest);
    }
    alignas(64) float lanes[kLanes];
    S::store_floats(lanes, largest);
    float most = largest_of(lanes);
    if (query.part != nullptr) query.part->largest = most;
    if (most == kMinusInfinity) most = 0.0F;  // sees nothing: all weights are to be zero
    const Floats minus = S::set_float(-most);
    for (std::size_t c = 0; c < n_scores(r); c += kLanes) {
      const Floats score = S::add(S::load_floats(scores + c), minus);
      S::store_floats(scores + c, exponential<S>(score));
    }
    divisors_[r] = query.has_sink ? weight_of<S>(query.sink, most) : 0.0F;
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

  // From cell to cell, for some rows side by side: each addition waits for the one before.
  template <int kN>
  void sum(int r) {
    float sum[kN];
    const float* weights[kN];
    for (int i = 0; i < kN; ++i) {
      sum[i] = divisors_[r + i];
      weights[i] = scores_ + at(r + i, seen_.stride);
    }
    for (std::size_t c = 0; c < n_scores(r); ++c) {
#pragma GCC unroll 4
      for (int i = 0; i < kN; ++i) sum[i] += weights[i][c];
    }
    for (int i = 0; i < kN; ++i) {
      divisors_[r + i] = sum[i];
      if (call_.rows[r + i].part != nullptr) call_.rows[r + i].part->divisor = sum[i];
    }
  }

  float* scores_;
  float* divisors_;
};

}  // namespace outrider::kernels
