#include "model/sampler.h"

#include <cmath>
#include <string>

namespace outrider {
namespace {

Status out_of_range(const char* option, float value, const char* wanted) {
  return invalid_argument(std::string(option) + " is " + std::to_string(value) + ", but must be " +
                          wanted);
}

}  // namespace

// Written as !(inside) so that NaN is outside.
Status validate(const SamplingOptions& o) {
  if (!(o.temperature >= 0.0f) || std::isinf(o.temperature)) {
    return out_of_range("--temp", o.temperature, "a finite number of at least 0 (0 is greedy)");
  }
  if (!(o.top_p > 0.0f && o.top_p <= 1.0f)) {
    return out_of_range("--top-p", o.top_p, "above 0 and at most 1 (1 switches it off)");
  }
  if (!(o.min_p >= 0.0f && o.min_p <= 1.0f)) {
    return out_of_range("--min-p", o.min_p, "from 0 to 1 (0 switches it off)");
  }
  if (!(o.typical_p > 0.0f && o.typical_p <= 1.0f)) {
    return out_of_range("--typical", o.typical_p, "above 0 and at most 1 (1 switches it off)");
  }
  return Status();
}

}  // namespace outrider
