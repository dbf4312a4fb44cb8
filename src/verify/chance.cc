#include "verify/chance.h"

namespace outrider {

bool SeededChance::flip(double probability) { return noise_uniform(key_, next_++) < probability; }

// Inverse of the cumulative sum. Rounding may leave the target beyond the last weight: then the
// last possible token is it.
Token SeededChance::draw(const Pmf& weights) {
  double left = noise_uniform(key_, next_++) * weights.total();
  Token last = kNoToken;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights.p(i) > 0.0)) continue;
    last = weights.token(i);
    left -= weights.p(i);
    if (left < 0.0) break;
  }
  return last;
}

}  // namespace outrider
