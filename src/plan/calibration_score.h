// CalibrationScore: how well chances of acceptance were predicted.
//
// Calibration error: over ten bins of predicted chance, the mean distance between what was
// predicted and how often it came true, weighted by the number of guesses (expected calibration
// error, Guo et al. 2017, section 2). Brier score: the mean squared distance between prediction (0
// to 1) and outcome (0 or 1); to be compared with that of predicting each depth's mean.
#pragma once

#include <array>
#include <cstdint>

namespace outrider {

class CalibrationScore {
 public:
  static constexpr std::size_t kBins = 10;

  struct Bin {
    std::int64_t n = 0;
    double predicted = 0.0;  // sum
    std::int64_t right = 0;
  };

  void add(std::int32_t depth, double predicted, bool right);

  std::int64_t n() const { return n_; }
  const std::array<Bin, kBins>& bins() const { return bins_; }
  double calibration_error() const;  // 0 without guesses
  double brier() const;
  double brier_of_means() const;  // of predicting, after the fact, the mean of each depth

 private:
  static constexpr std::size_t kDepths = 16;  // deeper ones count as the deepest

  std::int64_t n_ = 0;
  double squares_ = 0.0;
  std::array<Bin, kBins> bins_{};
  std::array<Bin, kDepths> depths_{};
};

}  // namespace outrider
