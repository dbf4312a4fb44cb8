#include "verify/coupled.h"

#include <string>

#include "dist/gumbel.h"

namespace outrider {

Result<Walk> verify_coupled(const TokenTree& tree, Pos root_position, std::uint64_t seed,
                            TargetDistributions& target) {
  Walk walk;
  NodeId node = kRoot;
  Pos position = root_position;
  while (node != kNoNode) {
    walk.path.push_back(node);
    ++position;
    const Result<Distribution> q = target.at(node);
    if (!q.ok()) return q.status();
    const Token token =
        perturbed_argmax(*q, noise_key(seed, static_cast<std::uint64_t>(position)));
    if (token == kNoToken) {
      return internal_error("the target gives no possible token at position " +
                            std::to_string(position) + " (all logits are -infinity or NaN)");
    }
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
