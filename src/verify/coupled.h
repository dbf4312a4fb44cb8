// The coupled rule: the target's own choice decides, the draft only has to guess it.
//
// Idea. At each visited node the target draws its token with the noise of (seed, position): argmax
// of log q + g (dist/gumbel.h). If a child carries that token the walk goes there and the child's
// logits, already computed, give the next token; else the walk ends. Since the draw never looks at
// the tree, the emitted text is the same for every tree, and for none: lossless and repeatable. At
// temperature 0, q has one token and this is greedy matching.
//
// Example. Text "the", tree the -> {cat -> sat, dog}. The target's draw after "the" is "cat": a
// child, accepted. After "cat" it is "ran": no child. Emitted: "cat ran", one drafted node
// accepted.
//
// Cost. One perturbed argmax per visited node: accepted + 1.
//
// Source: Daliri, Musco, Suresh 2024 ("drafter-invariant" speculative decoding); greedy matching:
// Stern et al. 2018 (blockwise parallel decoding). Tested by coupled_test.cc and, end to end, by
// tests/same_output_test.cc.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "verify/walk.h"

namespace outrider {

// Walks `tree` from its root. `root_position` is the root's position in the text, so the first
// decided token has position root_position + 1.
// Errors: what target.at() gives, and kInternal when a distribution has no possible token. Tokens
// announced before the error stay announced.
Result<Walk> verify_coupled(const TokenTree& tree, Pos root_position, std::uint64_t seed,
                            TargetDistributions& target);

}  // namespace outrider
