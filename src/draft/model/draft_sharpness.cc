#include "draft/model/draft_sharpness.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

// Guesses that are remembered: what one says fades as others come.
constexpr double kMemory = 4000.0;

// The first guesses move the factor as if there had been so many before.
constexpr double kPrior = 100.0;

// Leads below about 1 / kSteepness are close decisions.
constexpr double kSteepness = 4.0;

// How fast acceptance bends around its best factor: about 1 - 1/2 (a - best)^2 with the pair of the
// header at temperature 1, flatter at 0.7.
constexpr double kCurvature = 0.5;

}  // namespace

void DraftSharpness::learn(const DraftRivals& rivals, Token said) {
  if (rivals.first == kNoToken || (said != rivals.first && said != rivals.second)) return;
  if (!std::isfinite(rivals.log_p_lead) || !std::isfinite(rivals.noise_lead)) return;
  // A draft that is always right is sharp enough.
  if (seen_ == 0.0 && said == rivals.first) return;
  const double sign = said == rivals.first ? 1.0 : -1.0;
  const double d = sign * rivals.log_p_lead;
  const double lead = factor_ * d + sign * rivals.noise_lead;
  const double holds = 1.0 / (1.0 + std::exp(-kSteepness * lead));
  const double slope = kSteepness * holds * (1.0 - holds) * d;
  factor_ = std::clamp(factor_ + slope / (kCurvature * (kPrior + seen_)), kLeast, kMost);
  seen_ = std::min(seen_ + 1.0, kMemory);
}

void DraftSharpness::recall(std::span<const double> numbers) {
  if (numbers.size() != 2) return;
  const bool possible =
      numbers[0] >= kLeast && numbers[0] <= kMost && numbers[1] >= 0.0 && numbers[1] <= kMemory;
  if (!possible) return;
  factor_ = numbers[0];
  seen_ = numbers[1];
}

}  // namespace outrider
