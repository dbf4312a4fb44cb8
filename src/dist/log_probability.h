// Log-probabilities of tokens from a row of raw logits, and the likeliest ones.
//
// log p(i) = logit(i) - log sum exp(logit). The sum runs in single precision over blocks of 1,024
// values, 16 lanes wide, with a polynomial for 2^x that is right to a few units of the last place,
// and in double over the blocks: 1e-6 for any row, and the same bits for the same row.
//
// Cost, 49,152 values: 16 microseconds (std::exp one by one: 250).
//
// Tested by log_probability_test.cc against the obvious double loop.
#pragma once

#include <span>
#include <vector>

#include "base/types.h"

namespace outrider {

// log of the sum of exp(scale * logit) over `row`, natural; scale > 0. NaN counts as minus
// infinity. Minus infinity when nothing is possible; +infinity when a logit is.
double log_sum_exp(std::span<const float> row, float scale = 1.0f);

// The `count` tokens with the highest logits, best first, the smaller id first among equals; those
// that are impossible (minus infinity, NaN) left out.
std::vector<Token> likeliest(std::span<const float> row, std::size_t count);

}  // namespace outrider
