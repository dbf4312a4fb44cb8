// The places where llama.cpp's matcher may stand in a grammar, and what a step from there costs at
// most. For gbnf_rules.cc only, and tested through gbnf.h.
//
// Behind "x" in `"x" a? a? b` the matcher keeps a stack for each way to go on, and for each of
// those looks at all ways behind it. So not only the beginnings of rules count but every place in
// them. Where the rest of a rule may be empty, what stands behind the rule counts too, and so on
// outwards: in `r ::= s a?` and `s ::= "x" b?` both a? and b? stand behind "x".
#pragma once

#include <vector>

#include "base/status.h"
#include "llama/grammar/gbnf_components.h"

namespace outrider::llama {

// Errors: kInvalidArgument, naming the rule, where the text can go on in more than
// limits.place_ways ways at one place, or one character leads to more than limits.step_ways places.
// `first`, `measures`: the components of first edges, and theirs. Linear in the elements.
Status check_gbnf_places(const GbnfRules& grammar, const GbnfLimits& limits,
                         const std::vector<bool>& nullable, const Components& first,
                         const std::vector<Measure>& measures);

}  // namespace outrider::llama
