// Distribution: what a sampler chain leaves of a row of logits.
//
// A view of unnormalised log-probabilities: q(i) = exp(logit(i)) / sum of exp(logit). Dense: one
// value for each token of the vocabulary, ids implied. Sparse: the few candidates that the chain
// kept, with their ids in `tokens`. At temperature 0 the chain keeps one candidate, so greedy
// decoding needs no case of its own anywhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace outrider {

struct Distribution {
  std::span<const float> logits;  // [n]; -infinity: never; NaN is treated as never
  std::span<const Token> tokens;  // [n] distinct ids, or empty: entry i is token i
  float scale = 1.0f;             // log-probability of entry i = scale * logits[i] + constant; > 0

  std::size_t size() const { return logits.size(); }
  Token token(std::size_t i) const { return tokens.empty() ? static_cast<Token>(i) : tokens[i]; }
};

// Index of the largest logit (the smallest index among equals), or -1 when there is none (empty, or
// all are -infinity or NaN). Vectorised: 10 microseconds for 49,152 values.
std::ptrdiff_t argmax(std::span<const float> logits);

// The sum in 16 lanes: quicker than one after the other, and the same on every machine.
double sum_of(std::span<const double> values);

// Probabilities in double, same order as the distribution's entries, summing to 1; all zero when
// the distribution is empty. To a few units of the last place; below e^-700 of the largest it is 0.
std::vector<double> probabilities(const Distribution& q);

}  // namespace outrider
