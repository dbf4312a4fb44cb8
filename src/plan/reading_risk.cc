#include "plan/reading_risk.h"

#include <algorithm>

namespace outrider {
namespace {

// What reading takes is certain, and what was gained lately tends to be more than what will be.
constexpr double kReadingMargin = 1.3;
// What is expected to gain more than so many times its cost may risk in proportion more, up to
// kMostRatio times.
constexpr double kGoodRatio = 4.0;
constexpr double kMostRatio = 3.0;
constexpr double kMostRisked = 100.0;  // at once, in times of a single token

double gain_share(const UnreadText& text, const GainShares& gains) {
  return gains.share(text.n_ready, text.drawn, text.expected_share);
}

}  // namespace

bool ReadingRisk::pays(const UnreadText& text, double reading_ms, const GainShares& gains) {
  return kReadingMargin * reading_ms <=
         gain_share(text, gains) * text.worth_ms * static_cast<double>(text.to_come);
}

bool ReadingRisk::begin(const UnreadText& text, double reading_ms, const GainShares& gains,
                        double token_ms, double elapsed_ms) {
  // Of all requests, as they share their steps.
  const double to_come_ms = text.worth_ms * text.n_ready * static_cast<double>(text.to_come);
  const double expected_ms = gain_share(text, gains) * to_come_ms;
  const double ratio = reading_ms > 0.0 ? expected_ms / reading_ms : kGoodRatio;
  const double share = kRisked * std::clamp(ratio / kGoodRatio, 1.0, kMostRatio);
  const double most_ms = std::clamp(share * (elapsed_ms + to_come_ms), kLeastRisked * token_ms,
                                    kMostRisked * token_ms);
  const bool proven = gains.proven(text.n_ready, text.drawn);
  if (!proven && invested_ms_ + reading_ms > most_ms) return false;
  invested_ms_ += reading_ms;
  return true;
}

void ReadingRisk::give_back(double ms) { invested_ms_ = std::max(0.0, invested_ms_ - ms); }

void ReadingRisk::note_gain(double measured_ms) {
  invested_ms_ = std::max(0.0, invested_ms_ - measured_ms);
}

}  // namespace outrider
