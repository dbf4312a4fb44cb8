#include "plan/calibrate.h"

#include <optional>

#include "plan/tree_chances.h"

namespace outrider {
namespace {

constexpr std::int32_t kDrafters = static_cast<std::int32_t>(kMaxDrafters);

// Among the children of one node that a drafter claims, the surest.
std::optional<Claim> best_child(const TokenTree& tree, NodeId parent, std::int32_t drafter,
                                const NodeClaims& said) {
  std::optional<Claim> best;
  for (NodeId id = parent + 1; id < tree.size(); ++id) {
    if (tree.node(id).parent != parent) continue;
    said.for_each(id, [&](const Claim& claim) {
      if (claim.drafter == drafter && (!best || claim.chance > best->chance)) best = claim;
    });
  }
  return best;
}

void learn_at(const TokenTree& tree, NodeId at, Token next, const NodeClaims& said,
              AcceptanceTable& table, AcceptanceBias& bias) {
  for (NodeId id = at + 1; id < tree.size(); ++id) {
    if (tree.node(id).parent != at) continue;
    const bool right = tree.token(id) == next;
    said.for_each(id, [&](const Claim& claim) {
      const GuessClaim guess = said.guess(tree, claim);
      const double chance = bias.shifted(guess.drafter, table.chance(guess));
      table.learn(guess, right);
      bias.learn(guess.drafter, chance, right);
    });
  }
}

// What was predicted for the children of each node on the text's path, and what came true.
void score_along(const TokenTree& tree, std::span<const Token> emitted,
                 const TreeChances& predicted, CalibrationScore* score) {
  const auto chance = [&](NodeId id) { return predicted.values()[static_cast<std::size_t>(id)]; };
  NodeId at = kRoot;
  for (const Token next : emitted) {
    const float before = chance(at);
    for (NodeId id = at + 1; id < tree.size(); ++id) {
      const TokenTree::Node& node = tree.node(id);
      if (node.parent != at || !predicted.claims().any(id) || before <= 0.0f) continue;
      score->add(node.depth, static_cast<double>(chance(id) / before), node.token == next);
    }
    at = tree.child(at, next);
    if (at == kNoNode) break;
  }
}

}  // namespace

void calibrate(TokenTree& tree, const AcceptanceTable& table, const AcceptanceBias& bias) {
  TreeChances chances;
  chances.update(tree, table, bias);
  tree.set_chances(chances.values());
}

void learn_from(const TokenTree& proposed, std::span<const Token> emitted, DrafterMask asked,
                AcceptanceTable& table, AcceptanceBias& bias, CalibrationScore* score) {
  TreeChances predicted;
  predicted.update(proposed, table, bias);
  const NodeClaims& said = predicted.claims();
  if (score != nullptr) score_along(proposed, emitted, predicted, score);
  NodeId at = kRoot;
  for (const Token next : emitted) {
    for (std::int32_t d = 0; d < kDrafters; ++d) {
      if (((asked >> d) & 1) == 0) continue;
      const std::optional<Claim> best = best_child(proposed, at, d, said);
      // Having nothing to say counts against it only where it was asked.
      if (!best && at != kRoot) continue;
      table.learn_prediction(static_cast<std::size_t>(d), proposed.node(at).depth + 1,
                             best && proposed.token(best->node) == next);
    }
    learn_at(proposed, at, next, said, table, bias);
    at = proposed.child(at, next);
    if (at == kNoNode) break;
  }
}

}  // namespace outrider
