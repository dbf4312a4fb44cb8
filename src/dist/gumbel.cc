#include "dist/gumbel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace outrider {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// The exact score, in double with 64 bits of noise. -infinity when impossible.
double exact_score(const Distribution& q, std::size_t i, NoiseKey key) {
  const double logit = q.logits[i];
  if (std::isnan(logit) || logit == kNever) return kNever;
  const double v = noise_uniform(key, static_cast<std::uint32_t>(q.token(i)));
  return static_cast<double>(q.scale) * logit - std::log(-std::log1p(-v));
}

// Falling score; the smaller id first among equals, so that the order of entries cannot matter.
bool better(const PerturbedChoice& a, const PerturbedChoice& b) {
  return a.score != b.score ? a.score > b.score : a.token < b.token;
}

// An upper bound of exact_score / log(2) for each of `n` entries whose tokens are first_token + i.
//
// v's high word h gives v >= h * 2^-32 (h = 0 is bounded as h = 1/2^33 would be wrong, so it is sent
// to +infinity by the exponent trick below: see kZeroBound). For a float x > 0 with bits B,
// B * 2^-23 - 127 <= log2(x), equality at powers of two.
void upper_bounds(const float* logits, std::size_t n, std::uint32_t first_token, float scale_log2e,
                  NoiseKey key, float* bounds) {
  constexpr float kZeroBound = 1e-30f;  // stands for h = 0: its bound, about +100, always survives
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t h = noise_bits(key, first_token + static_cast<std::uint32_t>(i));
    // Rounded down to 24 bits first, so that the conversion is exact and stays below v.
    const std::int32_t h24 = static_cast<std::int32_t>(h >> 8);
    const float v = h24 == 0 ? kZeroBound : static_cast<float>(h24) * 0x1p-24f;
    const float log2_v =
        static_cast<float>(std::bit_cast<std::int32_t>(v)) * 0x1p-23f - 127.0f;
    const float bound = logits[i] * scale_log2e - log2_v;
    bounds[i] = bound == bound ? bound : kNever;  // NaN logits never win
  }
}

// The float arithmetic above errs by a few units in the last place of its largest term.
float slack_of(float largest_bound) { return 1e-3f + 1e-5f * std::fabs(largest_bound); }

std::vector<PerturbedChoice> best_of(std::vector<PerturbedChoice> found, std::size_t count) {
  const std::size_t n = std::min(count, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(n), found.end(),
                    better);
  found.resize(n);
  return found;
}

std::vector<PerturbedChoice> dense_top(const Distribution& q, NoiseKey key, std::size_t count) {
  constexpr double kLog2e = 1.4426950408889634;
  const std::size_t n = q.size();
  thread_local std::vector<float> bounds;  // scratch, [n_vocab]; grows once per thread
  bounds.resize(n);
  upper_bounds(q.logits.data(), n, 0, static_cast<float>(q.scale * kLog2e), key, bounds.data());

  // The exact scores of the entries with the `count` best bounds give the bar that others must reach.
  std::vector<PerturbedChoice> found;
  const std::ptrdiff_t first = argmax(bounds);
  if (first < 0) return found;
  const float top_bound = bounds[static_cast<std::size_t>(first)];
  if (std::isinf(top_bound)) return perturbed_top_reference(q, key, count);  // +infinite logits
  const float slack = slack_of(top_bound);

  // Lower the bar from the top bound in growing strides until enough exact scores lie above it. Each
  // pass is one vectorised scan; two or three are the rule.
  float stride = count == 1 ? 2.0f : 4.0f;
  for (float bar = top_bound - stride;; stride *= 4.0f, bar = top_bound - stride) {
    found.clear();
    for (std::size_t i = 0; i < n; ++i) {
      if (bounds[i] < bar) continue;
      const double score = exact_score(q, i, key);
      if (score > kNever) found.push_back({q.token(i), score});
    }
    found = best_of(std::move(found), count);
    const bool all_scanned = std::isinf(bar);
    const bool enough =
        found.size() == count && found.back().score * kLog2e > static_cast<double>(bar + slack);
    if (enough || all_scanned) return found;
  }
}

}  // namespace

std::vector<PerturbedChoice> perturbed_top_reference(const Distribution& q, NoiseKey key,
                                                     std::size_t count) {
  std::vector<PerturbedChoice> all;
  for (std::size_t i = 0; i < q.size(); ++i) {
    const double score = exact_score(q, i, key);
    if (score > kNever) all.push_back({q.token(i), score});
  }
  return best_of(std::move(all), count);
}

std::vector<PerturbedChoice> perturbed_top(const Distribution& q, NoiseKey key, std::size_t count) {
  constexpr std::size_t kSmall = 256;  // below this the plain way is as quick
  if (count == 0) return {};
  if (!q.tokens.empty() || q.size() <= kSmall) return perturbed_top_reference(q, key, count);
  return dense_top(q, key, count);
}

Token perturbed_argmax(const Distribution& q, NoiseKey key) {
  const std::vector<PerturbedChoice> top = perturbed_top(q, key, 1);
  return top.empty() ? kNoToken : top.front().token;
}

}  // namespace outrider
