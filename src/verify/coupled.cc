#include "verify/coupled.h"

#include "dist/gumbel.h"

namespace outrider {

Result<Walk> verify_coupled(const TokenTree& tree, Pos root_position, std::uint64_t seed,
                            TargetDistributions& target) {
  return walk_down(tree, root_position, target, [&](NodeId node, const Distribution& q) {
    const Pos position = root_position + 1 + tree.node(node).depth;
    return perturbed_argmax(q, noise_key(seed, static_cast<std::uint64_t>(position)));
  });
}

}  // namespace outrider
