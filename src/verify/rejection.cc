#include "verify/rejection.h"

#include <algorithm>

namespace outrider {
namespace {

// After a child was rejected its residual, normalised, takes the place of q. Where q equals p but
// for rounding there is none; q itself is then right to within that rounding.
void replace(Pmf residual, Pmf& q) {
  if (!residual.possible()) return;
  residual.normalise();
  q = std::move(residual);
}

// The child among those drawn from one p that stays, or kNoToken; `q` becomes the residual.
Token try_drawn(const TokenTree& tree, NodeId node, const Draw& draw, Chance& chance, Pmf& q) {
  Pmf p = draw.p;
  for (const Token token : draw.tokens) {
    if (tree.child(node, token) == kNoNode) return kNoToken;
    if (chance.flip(q.at(token) / p.at(token))) return token;
    replace(Pmf::residual(q, p), q);
    p.remove(token);
    p.normalise();
  }
  return kNoToken;
}

Token try_one_hot(const TokenTree& tree, NodeId node, const Draw* draw, Chance& chance, Pmf& q) {
  for (NodeId child = node + 1; child < tree.size(); ++child) {
    if (tree.node(child).parent != node) continue;
    const Token token = tree.token(child);
    const bool drawn = draw != nullptr && std::find(draw->tokens.begin(), draw->tokens.end(),
                                                    token) != draw->tokens.end();
    if (drawn) continue;
    if (chance.flip(q.at(token))) return token;
    Pmf residual = q;
    residual.remove(token);
    replace(std::move(residual), q);
  }
  return kNoToken;
}

}  // namespace

Result<Walk> verify_rejection(const TokenTree& tree, Pos root_position, const Draws& draws,
                              Chance& chance, TargetDistributions& target) {
  return walk_down(tree, root_position, target, [&](NodeId node, const Distribution& row) {
    Pmf q = Pmf::of(row);
    if (!q.possible()) return kNoToken;
    const Draw* draw = draws.find(tree.node(node).draw);
    if (draw != nullptr) {
      const Token token = try_drawn(tree, node, *draw, chance, q);
      if (token != kNoToken) return token;
    }
    const Token token = try_one_hot(tree, node, draw, chance, q);
    return token != kNoToken ? token : chance.draw(q);
  });
}

}  // namespace outrider
