#include "dist/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace outrider {

std::ptrdiff_t argmax(std::span<const float> logits) {
  // Two passes that both vectorise: the maximum, then where it first stands.
  constexpr std::size_t kLanes = 16;
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, kNever);
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      // A NaN compares false and is passed over.
      lanes[k] = logits[i + k] > lanes[k] ? logits[i + k] : lanes[k];
    }
  }
  float best = *std::max_element(lanes, lanes + kLanes);
  for (; i < logits.size(); ++i) best = logits[i] > best ? logits[i] : best;
  if (best == kNever) return -1;
  return std::find(logits.begin(), logits.end(), best) - logits.begin();
}

std::vector<double> probabilities(const Distribution& q) {
  std::vector<double> p(q.size(), 0.0);
  const std::ptrdiff_t top = argmax(q.logits);
  if (top < 0) return p;
  const double max_logit = q.logits[static_cast<std::size_t>(top)];
  double sum = 0.0;
  for (std::size_t i = 0; i < q.size(); ++i) {
    const double logit = q.logits[i];
    if (std::isnan(logit)) continue;
    // +infinity - +infinity would be NaN; infinite logits share the mass.
    p[i] = logit == max_logit ? 1.0 : std::exp(static_cast<double>(q.scale) * (logit - max_logit));
    sum += p[i];
  }
  for (double& value : p) value /= sum;
  return p;
}

}  // namespace outrider
