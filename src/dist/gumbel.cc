#include "dist/gumbel.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/types.h"

namespace outrider {
namespace {

// The exact score, in double with 64 bits of noise. -infinity when impossible.
double exact_score(const Distribution& q, std::size_t i, NoiseKey key) {
  const double logit = q.logits[i];
  if (std::isnan(logit) || logit == kRuledOut) return kRuledOut;
  return static_cast<double>(q.scale) * logit + gumbel_noise(key, q.token(i));
}

// Falling score; the smaller id first among equals, so that the order of entries cannot matter.
bool better(const PerturbedChoice& a, const PerturbedChoice& b) {
  return a.score != b.score ? a.score > b.score : a.token < b.token;
}

// Entries are handled in blocks: the bounds of a block and their maximum fit the registers' width,
// and whole blocks are passed over later.
constexpr std::size_t kBlock = 64;

// Upper bounds of exact_score / log(2) for entries [first, first + n), n <= kBlock, of a dense row.
// Returns the largest.
//
// v's high word h gives v >= h * 2^-32. For a float x > 0 with bits B, B * 2^-23 - 127 <= log2(x),
// with equality at powers of two; for x = 0 it is -127 (here -151), which is below log2 of the
// smallest v, 2^-65, as well. No branch, so the loop vectorises.
float upper_bounds(const float* logits, std::size_t first, std::size_t n, float scale_log2e,
                   NoiseKey key, float* bounds) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t h = noise_bits(key, static_cast<std::uint32_t>(first + i));
    // Rounded down to 24 bits first, so that the conversion is exact and stays below v.
    const std::int32_t h24 = static_cast<std::int32_t>(h >> 8);
    const float v24 = static_cast<float>(h24);
    const float log2_v =
        static_cast<float>(std::bit_cast<std::int32_t>(v24)) * 0x1p-23f - (127.0f + 24.0f);
    bounds[i] = logits[i] * scale_log2e - log2_v;
  }
  float lanes[16];  // NaN bounds compare false and are passed over
  std::fill(lanes, lanes + 16, kRuledOut);
  for (std::size_t i = 0; i + 16 <= n; i += 16) {
    for (std::size_t k = 0; k < 16; ++k) {
      lanes[k] = bounds[i + k] > lanes[k] ? bounds[i + k] : lanes[k];
    }
  }
  for (std::size_t i = n / 16 * 16; i < n; ++i) {
    lanes[0] = bounds[i] > lanes[0] ? bounds[i] : lanes[0];
  }
  return *std::max_element(lanes, lanes + 16);
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

// The exact scores of all entries whose bound reaches `bar`.
std::vector<PerturbedChoice> reaching(const Distribution& q, NoiseKey key,
                                      const std::vector<float>& bounds,
                                      const std::vector<float>& block_max, float bar) {
  std::vector<PerturbedChoice> found;
  for (std::size_t block = 0; block < block_max.size(); ++block) {
    if (block_max[block] < bar) continue;
    const std::size_t end = std::min(q.size(), (block + 1) * kBlock);
    for (std::size_t i = block * kBlock; i < end; ++i) {
      if (!(bounds[i] >= bar)) continue;
      const double score = exact_score(q, i, key);
      if (score > kRuledOut) found.push_back({q.token(i), score});
    }
  }
  return found;
}

std::vector<PerturbedChoice> dense_top(const Distribution& q, NoiseKey key, std::size_t count) {
  constexpr double kLog2e = 1.4426950408889634;
  const float scale_log2e = static_cast<float>(q.scale * kLog2e);
  thread_local std::vector<float> bounds;     // scratch, [n]; grows once per thread
  thread_local std::vector<float> block_max;  // [ceil(n / kBlock)]
  bounds.resize(q.size());
  block_max.resize((q.size() + kBlock - 1) / kBlock);
  for (std::size_t block = 0; block < block_max.size(); ++block) {
    const std::size_t first = block * kBlock;
    const std::size_t n = std::min(kBlock, q.size() - first);
    block_max[block] =
        upper_bounds(q.logits.data() + first, first, n, scale_log2e, key, bounds.data() + first);
  }
  const float top_bound = *std::max_element(block_max.begin(), block_max.end());
  if (top_bound == kRuledOut) return {};
  if (std::isinf(top_bound)) return perturbed_top_reference(q, key, count);  // infinite logits

  // Lower the bar from the top bound in growing strides until enough exact scores lie above it: an
  // entry below the bar cannot beat them. One or two rounds are the rule.
  const float slack = slack_of(top_bound);
  float stride = count == 1 ? 2.0f : 4.0f;
  for (float bar = top_bound - stride;; stride *= 4.0f, bar = top_bound - stride) {
    std::vector<PerturbedChoice> found = best_of(reaching(q, key, bounds, block_max, bar), count);
    const bool enough =
        found.size() == count && found.back().score * kLog2e > static_cast<double>(bar + slack);
    if (enough || std::isinf(bar)) return found;
  }
}

}  // namespace

double gumbel_noise(NoiseKey key, Token token) {
  return -std::log(-std::log1p(-noise_uniform(key, static_cast<std::uint32_t>(token))));
}

std::vector<PerturbedChoice> perturbed_top_reference(const Distribution& q, NoiseKey key,
                                                     std::size_t count) {
  std::vector<PerturbedChoice> all;
  for (std::size_t i = 0; i < q.size(); ++i) {
    const double score = exact_score(q, i, key);
    if (score > kRuledOut) all.push_back({q.token(i), score});
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
