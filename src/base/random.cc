#include "base/random.h"

namespace outrider {

double noise_uniform(NoiseKey key, std::uint32_t index) {
  const double high = noise_bits(key, index, 0);
  const double low = noise_bits(key, index, 1);
  // (high * 2^32 + low + 1/2) / 2^64. Small values keep their relative precision; the largest would
  // round to 1, which is excluded.
  const double u = (high + (low + 0.5) * 0x1p-32) * 0x1p-32;
  return u < 1.0 ? u : 0x1.fffffffffffffp-1;
}

}  // namespace outrider
