#include "plan/calibration_score.h"

#include <algorithm>
#include <cmath>

namespace outrider {

void CalibrationScore::add(std::int32_t depth, double predicted, bool right) {
  const std::size_t bin = std::min(
      kBins - 1, static_cast<std::size_t>(std::max(0.0, predicted) * static_cast<double>(kBins)));
  const std::size_t at = std::min(kDepths, static_cast<std::size_t>(std::max(depth, 1))) - 1;
  for (Bin* b : {&bins_[bin], &depths_[at]}) {
    ++b->n;
    b->predicted += predicted;
    b->right += right ? 1 : 0;
  }
  const double off = predicted - (right ? 1.0 : 0.0);
  squares_ += off * off;
  ++n_;
}

double CalibrationScore::calibration_error() const {
  if (n_ == 0) return 0.0;
  double off = 0.0;
  for (const Bin& bin : bins_) off += std::fabs(bin.predicted - static_cast<double>(bin.right));
  return off / static_cast<double>(n_);
}

double CalibrationScore::brier() const {
  return n_ == 0 ? 0.0 : squares_ / static_cast<double>(n_);
}

double CalibrationScore::brier_of_means() const {
  if (n_ == 0) return 0.0;
  double sum = 0.0;
  for (const Bin& depth : depths_) {
    if (depth.n == 0) continue;
    const double right = static_cast<double>(depth.right);
    sum += right * (1.0 - right / static_cast<double>(depth.n));
  }
  return sum / static_cast<double>(n_);
}

}  // namespace outrider
