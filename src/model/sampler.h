// Sampler: a sequence's chain of samplers, from a row of logits to the distribution to draw from.
#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "base/types.h"
#include "dist/distribution.h"

namespace outrider {

// What a request may ask of the chain. Names, meaning and defaults are llama.cpp's.
struct SamplingOptions {
  float temperature = 0.8f;   // >= 0; 0: greedy
  std::int32_t top_k = 40;    // <= 0: off
  float top_p = 0.95f;        // in (0, 1]; 1: off
  float min_p = 0.05f;        // in [0, 1]; 0: off
  float typical_p = 1.0f;     // in (0, 1]; 1: off
};

// Checks the ranges above. The message names the option as `run` spells it ("--top-p").
Status validate(const SamplingOptions& options);

// The distribution depends on the row and on the tokens accepted so far, never on randomness: the
// choice is the acceptance rule's. Not thread safe; one sequence has its own.
class Sampler {
 public:
  virtual ~Sampler() = default;

  // The distribution for `logits` ([n_vocab]). The view points into the sampler (or into `logits`)
  // and is valid until the next call. Does not change what later calls return.
  virtual Distribution apply(std::span<const float> logits) = 0;

  // `token` has become part of the text.
  virtual void accept(Token token) = 0;

  // True when accept() changes what apply() returns. Where it does not, a clone is never needed.
  virtual bool has_state() const = 0;

  // A copy with the same state.
  virtual std::unique_ptr<Sampler> clone() const = 0;
};

}  // namespace outrider
