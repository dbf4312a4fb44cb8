// The rejection rule: a drafted token stays with the chance that makes up for how it was drawn.
//
// Idea. A token x that was drawn from p stays with probability min(1, q(x) / p(x)); else the text
// takes a token from what q has more of than p, the residual max(q - p, 0). Together that is q
// exactly. With several children each is tried against the residual that the ones before left: for
// the k-th drawn without replacement, p without the earlier ones. A child that was not drawn
// (one-hot: an n-gram, an argmax) stays with the residual's own probability for it, which then
// loses it. When none stays, the token comes from the last residual.
//
// Example. q = (0.5, 0.5), p = (0.8, 0.2), drawn: token 0. It stays with 0.5 / 0.8; else the
// residual is (0, 0.3), so token 1. P(token 0) = 0.8 * 0.5 / 0.8 = 0.5.
//
// Needs. Tokens that were really drawn from the p that is named, independently of everything here,
// and sent whatever they were (dist/draws.h). Of the tokens drawn for a node, those after the first
// one that was not sent are ignored.
//
// Cost. Per visited node two passes over q, and two more for each child tried; over the few
// candidates of a top-k next to nothing.
//
// Source: Leviathan et al. 2023 (2211.17192), Chen et al. 2023 (2302.01318); several children:
// SpecInfer (2305.09781), without replacement: Jeon et al. 2024 (2402.14160). Proved by
// rules_proof_test.cc.
#pragma once

#include "base/status.h"
#include "dist/draws.h"
#include "verify/chance.h"
#include "verify/walk.h"

namespace outrider {

// Errors: those of walk_down. A token drawn from the residual goes on down the tree when a child
// happens to carry it.
Result<Walk> verify_rejection(const TokenTree& tree, Pos root_position, const Draws& draws,
                              Chance& chance, TargetDistributions& target);

}  // namespace outrider
