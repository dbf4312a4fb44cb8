// Texts that llama.cpp's matcher would follow in very many ways before it refuses them. For gbnf.cc
// only, and tested through gbnf.h.
//
// Behind "x" in `"x" o{30}` with `o ::= [a-z]?` nine letters and a sign can be read in C(30, 9)
// ways: each letter may be any of the parts. The matcher keeps a stack for each, does not merge
// those that are equal, and a token is refused only when all are: one such token of a vocabulary
// holds it for minutes, in one call that nothing can end.
//
// So a text is looked for that costs this: from the grammar's beginning and from each reference,
// with the stack that the shortest way there leaves, the matcher is followed character by character
// with equal stacks merged and counted, always on with the character that most ways take. What is
// refused comes with that text; but not all such texts are found, and of a grammar that takes more
// than a fixed number of steps to look through, the rest is not looked at. What stands behind a
// rule that never ends counts as well, though nothing gets there.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "llama/grammar/gbnf_rules.h"

namespace outrider::llama {

// Errors: kInvalidArgument, with the rule and the text, where more than limits.token_ways ways lead
// into a text of at most 16 characters that all of them refuse. `grammar` has passed
// check_gbnf_rules; it begins with the rule `root`.
Status check_gbnf_ambiguity(const GbnfRules& grammar, std::uint32_t root, const GbnfLimits& limits);

}  // namespace outrider::llama
