#include "plan/gain_balance.h"

#include <algorithm>

namespace outrider {

void GainBalance::note_gain(double gain_ms, double may_be_lost_ms, double token_ms) {
  balance_ms_ = std::clamp(balance_ms_ + gain_ms, -2.0 * limits_.most_lost * token_ms,
                           limits_.most_gained * token_ms);
  const double within_ms =
      std::clamp(may_be_lost_ms, limits_.least_lost * token_ms, limits_.most_lost * token_ms);
  const double most_lost_ms = std::min(within_ms, bound_ * token_ms);
  if (balance_ms_ < -most_lost_ms) suspended_ = true;
  token_ms_ = token_ms;
}

void GainBalance::add_allowance(double ms) {
  if (!suspended_) return;
  balance_ms_ += ms;
  suspended_ = balance_ms_ < std::max(limits_.ends_at, -bound_) * token_ms_;
}

}  // namespace outrider
