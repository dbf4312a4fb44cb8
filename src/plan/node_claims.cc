#include "plan/node_claims.h"

#include <algorithm>

namespace outrider {

void NodeClaims::clear() {
  lists_.clear();
  entries_.clear();
  n_read_ = 0;
}

void NodeClaims::update(const TokenTree& tree) {
  lists_.resize(static_cast<std::size_t>(tree.size()));
  for (; n_read_ < tree.claims().size(); ++n_read_) {
    const Claim& claim = tree.claims()[n_read_];
    if (claim.drafter >= static_cast<std::int32_t>(kMaxDrafters)) continue;
    const std::int32_t index = static_cast<std::int32_t>(entries_.size());
    entries_.push_back({.claim = claim});
    List& list = lists_[static_cast<std::size_t>(claim.node)];
    (list.first == kEnd ? list.first : entries_[static_cast<std::size_t>(list.last)].next) = index;
    list.last = index;
  }
}

GuessClaim NodeClaims::guess(const TokenTree& tree, const Claim& claim) const {
  const TokenTree::Node& node = tree.node(claim.node);
  float before = 1.0f;
  for_each(node.parent, [&](const Claim& other) {
    if (other.drafter == claim.drafter) before = other.chance;
  });
  const float confidence = before > 0.0f ? std::min(1.0f, claim.chance / before) : 0.0f;
  return {.drafter = static_cast<std::size_t>(claim.drafter),
          .depth = node.depth,
          .confidence = confidence};
}

}  // namespace outrider
