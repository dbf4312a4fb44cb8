// The block rule: a drafted chain is judged as a whole, and never less of it stays than by
// rejection.
//
// Idea. Rejection judges token by token and forgets how well the earlier ones fitted. Here the
// ratio of the target's to the draft's probability of the whole prefix is carried along, as far as
// it is below 1: with drafted x1..xg, the draft's Q and the target's P on the same prefix,
//
//     p0 = 1,  p_i = min(1, p_{i-1} P(x_i) / Q(x_i))
//     s_i = sum over x of max(p_i P(x) - Q(x), 0)      P, Q of the token after x_i
//     h_i = s_i / (s_i + 1 - p_i),  h_g = p_g
//
// From i = g down, a random decision that is true with probability h_i is made; at the first that
// is true the tokens up to x_i stay (at i = 0 none does). The next token comes from
// max(p_i P - Q, 0), or from P when the whole chain stays.
//
// Example. One token drafted: h_1 = p_1 = min(1, P/Q), the residual max(P - Q, 0): plain rejection.
//
// Needs what `rejection` needs (verify/rejection.h). A node without a draw is one-hot, for which
// the rule gains nothing over rejection, and loses nothing. Chains only: of a tree, the first
// children.
//
// Cost. The target's distribution at every drafted node, not only the accepted ones, and about four
// passes over each.
//
// Source: Sun et al., "Block verification accelerates speculative decoding" (2403.10444). Proved by
// rules_proof_test.cc.
#pragma once

#include "base/status.h"
#include "dist/draws.h"
#include "verify/chance.h"
#include "verify/walk.h"

namespace outrider {

// Errors: those of walk_down.
Result<Walk> verify_block(const TokenTree& tree, Pos root_position, const Draws& draws,
                          Chance& chance, TargetDistributions& target);

}  // namespace outrider
