// The Gumbel-max trick with counter-based noise: the "coupled" choice of a token.
//
// Idea. With independent g(i) = -log(-log(u(i))), argmax over i of log q(i) + g(i) is a draw from q
// (Gumbel 1954; Yellott 1977). When u depends only on (seed, position, token), the target and a
// drafter that look at the same position see the same noise, so that where p is near q they mostly
// pick the same token: the chance is at least (1 - TV(p, q)) / (1 + TV(p, q)) (Daliri, Musco,
// Suresh, "Coupling without communication and drafter-invariant speculative decoding", 2024). And
// the target's pick does not depend on p at all: the text is the same with any drafter.
//
// Order. The tokens in falling order of log p + g are a sample without replacement from p (Gumbel
// top-k), so the runners-up are the natural further branches of a tree.
//
// Cost. No logarithm per token. With E = -log(1 - v), v uniform, log q + g = log q - log E, and
// log E >= log v, whose base-2 value is bounded from below by reading the exponent and mantissa of
// the float v as a fixed-point number. That gives a cheap upper bound for every token (a hash, a
// conversion, a multiply-add, all vectorised); only the few tokens whose bound reaches the best
// exact value are computed in double with 64-bit noise. 49,152 tokens: see docs/benchmarks.md.
//
// Tested by gumbel_test.cc: against the obvious double loop, chi-square over a million draws,
// independence of positions, minus infinity, ties, one candidate.
#pragma once

#include <vector>

#include "base/random.h"
#include "base/types.h"
#include "dist/distribution.h"

namespace outrider {

struct PerturbedChoice {
  Token token = kNoToken;
  double score = 0.0;  // scale * logit + g
};

// The noise g of a token under `key`.
double gumbel_noise(NoiseKey key, Token token);

// The token with the largest perturbed log-probability under `key`, or kNoToken when no entry of
// `q` is possible. Exactly repeatable: depends on q's values and key only, not on the order of
// sparse entries or on the vector width.
Token perturbed_argmax(const Distribution& q, NoiseKey key);

// The `count` best in falling order of score (fewer when fewer are possible).
std::vector<PerturbedChoice> perturbed_top(const Distribution& q, NoiseKey key, std::size_t count);

// The obvious reference: every token in double, no bounds. For tests and for the statement of what
// perturbed_top computes.
std::vector<PerturbedChoice> perturbed_top_reference(const Distribution& q, NoiseKey key,
                                                     std::size_t count);

}  // namespace outrider
