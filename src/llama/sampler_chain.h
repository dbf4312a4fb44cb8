// The sampler chain of a request, made of llama.cpp's own samplers.
//
// Order: llama.cpp's default, top-k, typical, top-p, min-p, temperature; what is switched off is
// left out. What comes out is what llama.cpp's chain leaves, bit for bit, candidates in its order
// (sampler_chain_test.cc compares them over random rows, ties included), except that
//  - at temperature 0 one candidate is left (llama.cpp leaves several, all but one at minus
//    infinity), of equal logits the one with the lowest id, and
//  - with nothing but a temperature the distribution is a view of the row with scale 1/T; llama.cpp
//    divides each logit.
// NaN logits count as minus infinity; llama.cpp's sorting is undefined for them.
//
// Cost. llama.cpp begins by copying the row into 12-byte records, 49,152 of them, and partially
// sorting these. Most of it can be known not to matter: a top-k first in the chain needs only the k
// best, and one pass over the floats finds them, by the k-th largest of the maxima of blocks of 64,
// which at least k values reach. llama.cpp's samplers then work on k records. Ties at the edge or
// among the k depend on the order in which llama.cpp sorts, so then the row goes the whole way.
// Microseconds for 49,152 / 262,144 values (one core of an AMD EPYC, bench/sampler_bench.cc), in
// brackets llama.cpp's chain: default 13 / 62 (50 / 296); greedy 8 / 41; min-p alone 12 / 60
// (86 / 443); temperature alone nothing. Top-p without top-k is llama.cpp's own: 3 ms on a flat row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "base/types.h"
#include "model/sampler.h"

namespace outrider::llama {

// A chain for rows of `n_vocab` logits (REQUIRES: >= 1). `suppressed` are ids that are never to be
// said (LlamaVocabulary::suppressed()), 0 <= id < n_vocab; they are removed first.
// Errors: kInvalidArgument for an option out of range; kResourceExhausted.
Result<std::unique_ptr<Sampler>> make_sampler(const SamplingOptions& options, std::int32_t n_vocab,
                                              std::span<const Token> suppressed = {});

}  // namespace outrider::llama
