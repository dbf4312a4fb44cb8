#include "dist/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace outrider {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// NaN compares false and is passed over.
float block_maximum(std::span<const float> values) {
  constexpr std::size_t kLanes = 16;
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, kNever);
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      lanes[k] = values[i + k] > lanes[k] ? values[i + k] : lanes[k];
    }
  }
  for (; i < values.size(); ++i) lanes[0] = values[i] > lanes[0] ? values[i] : lanes[0];
  return *std::max_element(lanes, lanes + kLanes);
}

}  // namespace

std::ptrdiff_t argmax(std::span<const float> logits) {
  // Block maxima vectorise; a search for the place, which does not, is then left for one block.
  constexpr std::size_t kBlock = 1024;
  float best = kNever;
  std::size_t best_block = 0;
  for (std::size_t first = 0; first < logits.size(); first += kBlock) {
    const std::size_t n = std::min(kBlock, logits.size() - first);
    const float maximum = block_maximum(logits.subspan(first, n));
    if (maximum > best) {
      best = maximum;
      best_block = first;
    }
  }
  if (best == kNever) return -1;
  return std::find(logits.begin() + static_cast<std::ptrdiff_t>(best_block), logits.end(), best) -
         logits.begin();
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
