#include "dist/log_probability.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/types.h"
#include "dist/distribution.h"

namespace outrider {
namespace {

constexpr std::size_t kLanes = 16;

// exp(x) for x <= 0; what is below -87, NaN included, gives about 1e-38. No branch, so that loops
// over it vectorise.
float exp_of_negative(float x) {
  constexpr float kLog2e = 1.44269504F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to a whole number
  const float t = (x > -87.0F ? x : -87.0F) * kLog2e;
  const float rounded = t + kRound;
  const float whole = rounded - kRound;
  const float f = t - whole;  // -0.5 to 0.5; 2^f by its Taylor series
  float p = 1.52527338e-5F;
  p = p * f + 1.54035304e-4F;
  p = p * f + 1.33335581e-3F;
  p = p * f + 9.61812911e-3F;
  p = p * f + 5.55041087e-2F;
  p = p * f + 2.40226507e-1F;
  p = p * f + 6.93147181e-1F;
  p = p * f + 1.0F;
  const std::int32_t exponent = static_cast<std::int32_t>(whole) + 127;
  return p * std::bit_cast<float>(exponent << 23);
}

float sum_of_block(const float* values, std::size_t n, float best, float scale) {
  float lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      lanes[k] += exp_of_negative((values[i + k] - best) * scale);
    }
  }
  for (; i < n; ++i) lanes[0] += exp_of_negative((values[i] - best) * scale);
  float sum = 0.0F;
  for (const float lane : lanes) sum += lane;
  return sum;
}

}  // namespace

double log_sum_exp(std::span<const float> row, float scale) {
  constexpr std::size_t kBlock = 1024;
  const std::ptrdiff_t top = argmax(row);
  if (top < 0) return kRuledOut;
  const float best = row[static_cast<std::size_t>(top)];
  if (std::isinf(best)) return best;
  double sum = 0.0;
  for (std::size_t begin = 0; begin < row.size(); begin += kBlock) {
    sum += sum_of_block(row.data() + begin, std::min(kBlock, row.size() - begin), best, scale);
  }
  return static_cast<double>(scale) * static_cast<double>(best) + std::log(sum);
}

std::vector<Token> likeliest(std::span<const float> row, std::size_t count) {
  // Counts are small (20 at most for a request): a sorted list with a bar to get over.
  std::vector<Token> best;
  if (count == 0) return best;
  float bar = kRuledOut;
  constexpr std::size_t kBlock = 64;  // most hold nothing above the bar, which is seen at once
  for (std::size_t begin = 0; begin < row.size(); begin += kBlock) {
    const std::span<const float> block = row.subspan(begin, std::min(kBlock, row.size() - begin));
    int above = 0;
    for (const float value : block) above |= value > bar ? 1 : 0;
    if (above == 0) continue;
    for (std::size_t i = begin; i < begin + block.size(); ++i) {
      if (!(row[i] > bar)) continue;
      std::size_t at = best.size();
      while (at > 0 && row[static_cast<std::size_t>(best[at - 1])] < row[i]) --at;
      best.insert(best.begin() + static_cast<std::ptrdiff_t>(at), static_cast<Token>(i));
      if (best.size() > count) best.pop_back();
      if (best.size() == count) bar = row[static_cast<std::size_t>(best.back())];
    }
  }
  return best;
}

}  // namespace outrider
