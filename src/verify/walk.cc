#include "verify/walk.h"

#include <string>

namespace outrider {

Status no_possible_token(Pos position) {
  return internal_error("no token is possible at position " + std::to_string(position) +
                        ": the target's logits, the grammar and the biases leave none");
}

Result<Walk> walk_down(const TokenTree& tree, Pos root_position, TargetDistributions& target,
                       const Decide& decide) {
  Walk walk;
  NodeId node = kRoot;
  Pos position = root_position;
  while (node != kNoNode) {
    walk.path.push_back(node);
    ++position;
    const Result<Distribution> q = target.at(node);
    if (!q.ok()) return q.status();
    const Token token = decide(node, *q);
    if (token == kNoToken) return no_possible_token(position);
    walk.emitted.push_back(token);
    const bool goes_on = target.accept(token);
    const NodeId child = tree.child(node, token);
    if (!goes_on) {
      if (child != kNoNode) walk.path.push_back(child);
      break;
    }
    node = child;
  }
  return walk;
}

}  // namespace outrider
