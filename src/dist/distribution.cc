#include "dist/distribution.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/types.h"

namespace outrider {

namespace {

// NaN compares false and is passed over.
float block_maximum(std::span<const float> values) {
  constexpr std::size_t kLanes = 16;
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, kRuledOut);
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
  float best = kRuledOut;
  std::size_t best_block = 0;
  for (std::size_t first = 0; first < logits.size(); first += kBlock) {
    const std::size_t n = std::min(kBlock, logits.size() - first);
    const float maximum = block_maximum(logits.subspan(first, n));
    if (maximum > best) {
      best = maximum;
      best_block = first;
    }
  }
  if (best == kRuledOut) return -1;
  return std::find(logits.begin() + static_cast<std::ptrdiff_t>(best_block), logits.end(), best) -
         logits.begin();
}

namespace {

// e^x for x <= 0, to two units of the last place; 0 below -700 and for NaN. No call and no branch,
// so that a loop over it vectorises: x = k ln 2 + r, |r| <= ln 2 / 2, the Taylor series of e^r to
// degree 13 (error below 1e-17), and k added to the exponent's bits. Adding 1.5 * 2^52 rounds to a
// whole number and leaves it in the low bits.
inline double exp_below_0(double x) {
  constexpr double kShift = 0x1.8p52;
  const double shifted = x * 1.4426950408889634 + kShift;
  const double k = shifted - kShift;
  const double r = (x - k * 0x1.62e42fefa3800p-1) - k * 0x1.ef35793c76730p-45;
  double e = 1.0 / 6227020800.0;
  e = e * r + 1.0 / 479001600.0;
  e = e * r + 1.0 / 39916800.0;
  e = e * r + 1.0 / 3628800.0;
  e = e * r + 1.0 / 362880.0;
  e = e * r + 1.0 / 40320.0;
  e = e * r + 1.0 / 5040.0;
  e = e * r + 1.0 / 720.0;
  e = e * r + 1.0 / 120.0;
  e = e * r + 1.0 / 24.0;
  e = e * r + 1.0 / 6.0;
  e = e * r + 0.5;
  e = e * r + 1.0;
  e = e * r + 1.0;
  const std::uint64_t power = (std::bit_cast<std::uint64_t>(shifted) + 1023) << 52;
  const double value = e * std::bit_cast<double>(power);
  return x > -700.0 ? value : 0.0;
}

}  // namespace

double sum_of(std::span<const double> values) {
  constexpr std::size_t kLanes = 16;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) lanes[k] += values[i + k];
  }
  for (std::size_t k = 0; i < values.size(); ++i, ++k) lanes[k] += values[i];
  double sum = 0.0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

std::vector<double> probabilities(const Distribution& q) {
  std::vector<double> p(q.size(), 0.0);
  const std::ptrdiff_t top = argmax(q.logits);
  if (top < 0) return p;
  const double max_logit = q.logits[static_cast<std::size_t>(top)];
  const double scale = q.scale;
  const float* logits = q.logits.data();
  double* out = p.data();
  const std::size_t n = p.size();
  for (std::size_t i = 0; i < n; ++i) {
    const double logit = logits[i];
    const double value = exp_below_0(scale * (logit - max_logit));
    // +infinity - +infinity would be NaN; infinite logits share the mass.
    out[i] = logit == max_logit ? 1.0 : value;
  }
  const double sum = sum_of(p);
  for (std::size_t i = 0; i < n; ++i) out[i] /= sum;
  return p;
}

}  // namespace outrider
