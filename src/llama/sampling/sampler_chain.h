// The sampler chain of a request, made of llama.cpp's own samplers, but for DRY
// (llama/sampling/dry_penalty.h), whose numbers are llama.cpp's.
//
// Order (model/sampler.h): grammar, logit bias, penalties, DRY, top-n-sigma, top-k, typical, top-p,
// min-p, XTC, temperature; what is switched off is left out. What comes out is what llama.cpp's
// chain leaves, bit for bit, candidates in its order (sampler_chain_test.cc compares them over
// random rows, ties included), except that
//  - at temperature 0 one candidate is left (llama.cpp leaves several, all but one at minus
//    infinity), of equal logits the one with the lowest id;
//  - with nothing but a temperature the distribution is dense, with scale 1/T; llama.cpp divides
//    each logit;
//  - where the temperature is so low that a quotient would be infinite, a power of two takes the
//    place of the division: the logits keep their order, and the likeliest token is chosen;
//  - XTC's chance is drawn from (seed, position) instead of a generator with a state, and mirostat
//    learns when a token is accepted (llama/sampling/mirostat.h).
// NaN logits count as minus infinity; llama.cpp's sorting is undefined for them.
//
// Cost. llama.cpp begins by copying the row into 12-byte records, 49,152 of them, and partially
// sorting these. Most of it can be known not to matter. Bias, penalties and DRY change a few tokens
// (llama/sampling/row_edits.h). A top-k, min-p or greedy choice first in the chain needs only the
// best values, which one pass over the floats finds (llama/sampling/candidates.h); llama.cpp's
// samplers then work on those. A grammar is asked about these only, in growing batches until enough
// are allowed. Ties at the edge or among the k depend on the order in which llama.cpp sorts, so
// then, and when the batches find too few, the row goes through all of llama.cpp's chain.
// Microseconds for 49,152 / 262,144 values (one core of an AMD EPYC, bench/sampler_bench.cc), in
// brackets llama.cpp's chain: default 13 / 62 (50 / 296); greedy 8 / 41; min-p alone 12 / 60 (86 /
// 443); temperature alone nothing. Top-p without top-k is llama.cpp's own: 3 ms on a flat row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "base/types.h"
#include "model/sampler.h"

namespace outrider::llama {

class LlamaVocabulary;

// A chain for rows of at most vocabulary.size() logits. Tokens that the vocabulary suppresses are
// never left. `vocabulary` must outlive the sampler and its clones.
// Errors: kInvalidArgument, naming the option, for one that is out of range, a combination that
// makes no sense, a token that is not in the vocabulary, a grammar or schema that cannot be used;
// kResourceExhausted.
Result<std::unique_ptr<Sampler>> make_sampler(const SamplingOptions& options,
                                              const LlamaVocabulary& vocabulary);

// The same without a vocabulary's texts, for rows of at most `n_vocab` logits (REQUIRES: >= 1);
// `suppressed` are ids that are never to be said, 0 <= id < n_vocab. A grammar, DRY and ignore_eos
// are refused.
Result<std::unique_ptr<Sampler>> make_sampler(const SamplingOptions& options, std::int32_t n_vocab,
                                              std::span<const Token> suppressed = {});

}  // namespace outrider::llama
