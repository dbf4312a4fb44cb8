#include "plan/gain_shares.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr double kGainMemory = 200.0;  // tokens that count most
// As how many tokens of the text what is expected counts.
constexpr double kFirstGainTokens = 8.0;
// Behind so many tokens, what was gained is known well enough to read for it.
constexpr double kProvenTokens = 16.0;
// As how many tokens of the text another run's gain counts at most. A loss counts less, and half as
// much with each run that does not confirm it: else a drafter that lost in one bad run, beside
// another program perhaps, would never read a long text again, and so never show that it is good.
constexpr double kRecalledTokens = 50.0;
constexpr double kRecalledLossTokens = 8.0;

}  // namespace

std::size_t GainShares::index(std::int32_t n_ready, bool drawn) {
  std::size_t load = 0;
  for (std::int32_t n = n_ready; n > 1 && load + 1 < kLoads; n /= 2) ++load;
  return drawn ? kLoads + load : load;
}

void GainShares::note_gain(const DrafterGain& gain) {
  const double n = static_cast<double>(gain.tokens);
  const double fade = std::max(0.0, 1.0 - n / kGainMemory);
  Gained& gained = gained_[index(gain.n_ready, gain.drawn)];
  const double gain_ms = std::max(gain.expected_ms, -kMostLostAtOnce * gain.token_ms);
  gained.shares = gained.shares * fade + (gain.worth_ms > 0.0 ? gain_ms / gain.worth_ms : 0.0);
  gained.tokens = gained.tokens * fade + n;
}

double GainShares::share(std::int32_t n_ready, bool drawn, double expected) const {
  const Gained& gained = gained_[index(n_ready, drawn)];
  return (gained.shares + expected * kFirstGainTokens) / (gained.tokens + kFirstGainTokens);
}

bool GainShares::proven(std::int32_t n_ready, bool drawn) const {
  const Gained& gained = gained_[index(n_ready, drawn)];
  return gained.tokens >= kProvenTokens && gained.shares > 0.0;
}

std::vector<double> GainShares::numbers() const {
  std::vector<double> numbers;
  for (const Gained& gained : gained_) {
    numbers.push_back(gained.shares);
    numbers.push_back(gained.tokens);
  }
  return numbers;
}

void GainShares::recall(std::span<const double> numbers) {
  gained_ = {};
  for (std::size_t i = 0; i < gained_.size() && 2 * i + 1 < numbers.size(); ++i) {
    const double shares = numbers[2 * i];
    const double tokens = numbers[2 * i + 1];
    if (!(tokens > 0.0)) continue;
    gained_[i].tokens = shares < 0.0 ? std::min(tokens, kRecalledLossTokens) / 2.0
                                     : std::min(tokens, kRecalledTokens);
    gained_[i].shares = shares * gained_[i].tokens / tokens;
  }
}

}  // namespace outrider
