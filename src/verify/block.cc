#include "verify/block.h"

#include <algorithm>
#include <vector>

namespace outrider {
namespace {

// The first child of `node`, or kNoNode. With a draw, the first token drawn.
NodeId first_child(const TokenTree& tree, NodeId node, const Draw* draw) {
  if (draw != nullptr) return draw->tokens.empty() ? kNoNode : tree.child(node, draw->tokens[0]);
  for (NodeId child = node + 1; child < tree.size(); ++child) {
    if (tree.node(child).parent == node) return child;
  }
  return kNoNode;
}

// One drafted token and its numbers.
struct Link {
  NodeId node = kRoot;  // the token's node; the root for i = 0
  double fit = 1.0;     // p_i
  double stays = 1.0;   // h_i
  Pmf residual;         // max(p_i P - Q, 0), or P at the end: what the next token comes from
  Status failure;       // of P; matters only if the text comes here
};

}  // namespace

Result<Walk> verify_block(const TokenTree& tree, Pos root_position, const Draws& draws,
                          Chance& chance, TargetDistributions& target) {
  std::vector<Link> chain(1);
  while (true) {
    Link& link = chain.back();
    const Result<Distribution> row = target.peek(link.node);
    Pmf p;
    if (row.ok()) p = Pmf::of(*row);
    if (!p.possible()) {  // a grammar's dead end, say: nothing can stand behind this token
      link.failure = row.ok() ? no_possible_token(root_position + 1 + tree.node(link.node).depth)
                              : row.status();
      link.stays = link.fit;
      break;
    }
    const Draw* draw = draws.find(tree.node(link.node).draw);
    const NodeId child = first_child(tree, link.node, draw);
    if (child == kNoNode) {
      link.stays = link.fit;
      link.residual = std::move(p);
      break;
    }
    const Token token = tree.token(child);
    const Pmf q = draw != nullptr ? draw->p : Pmf::sparse({token}, {1.0});
    link.residual = Pmf::residual(p, q, link.fit);
    const double excess = link.residual.total();
    const double denominator = excess + 1.0 - link.fit;
    link.stays = denominator > 0.0 ? excess / denominator : 1.0;
    // Where nothing exceeds Q though the chain fits (P equals Q), the next token is never asked
    // for, but for rounding.
    if (!(excess > 0.0)) link.residual = p;
    const double fit = std::min(1.0, link.fit * p.at(token) / q.at(token));
    if (!(fit > 0.0)) break;  // nothing behind it can stay
    chain.push_back({.node = child, .fit = fit});
  }

  std::size_t kept = chain.size() - 1;
  while (kept > 0 && !chance.flip(chain[kept].stays)) --kept;
  Walk walk;
  walk.path.push_back(kRoot);
  for (std::size_t i = 1; i <= kept; ++i) {
    walk.path.push_back(chain[i].node);
    walk.emitted.push_back(tree.token(chain[i].node));
    if (!target.accept(walk.emitted.back())) return walk;
  }
  if (!chain[kept].failure.ok()) return chain[kept].failure;
  const Token next = chance.draw(chain[kept].residual);
  walk.emitted.push_back(next);
  target.accept(next);
  return walk;
}

}  // namespace outrider
