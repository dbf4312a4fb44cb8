#include "plan/calibrate.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace outrider {
namespace {

constexpr std::int32_t kDrafters = static_cast<std::int32_t>(kMaxDrafters);

// Claims by the node they are about, and what each says of its last step alone.
class Confidences {
 public:
  explicit Confidences(const TokenTree& tree)
      : tree_(tree), by_node_(static_cast<std::size_t>(tree.size())) {
    for (const Claim& claim : tree.claims()) {
      if (claim.drafter < kDrafters) {
        by_node_[static_cast<std::size_t>(claim.node)].push_back(claim);
      }
    }
  }

  std::span<const Claim> of(NodeId node) const { return by_node_[static_cast<std::size_t>(node)]; }

  // Whether what this drafter says of `node` may count.
  bool counts(NodeId node, std::int32_t drafter) const {
    const DrafterMask drawn_by = tree_.node(tree_.node(node).parent).drawn_by;
    return drawn_by == 0 || ((drawn_by >> drafter) & 1) != 0;
  }

  GuessClaim guess(const Claim& claim) const {
    const TokenTree::Node& node = tree_.node(claim.node);
    float before = 1.0f;
    for (const Claim& other : of(node.parent)) {
      if (other.drafter == claim.drafter) before = other.chance;
    }
    const float confidence = before > 0.0f ? std::min(1.0f, claim.chance / before) : 0.0f;
    return {.drafter = static_cast<std::size_t>(claim.drafter),
            .depth = node.depth,
            .confidence = confidence};
  }

 private:
  const TokenTree& tree_;
  std::vector<std::vector<Claim>> by_node_;
};

double chance_of(const GuessClaim& guess, const AcceptanceTable& table,
                 const AcceptanceBias& bias) {
  return bias.shifted(guess.drafter, table.chance(guess));
}

// The node's chance, given that its parent is right, before its siblings are looked at.
double chance_at(NodeId node, const Confidences& said, const AcceptanceTable& table,
                 const AcceptanceBias& bias) {
  double best = 0.0;
  for (const Claim& claim : said.of(node)) {
    if (!said.counts(node, claim.drafter)) continue;
    best = std::max(best, chance_of(said.guess(claim), table, bias));
  }
  return best;
}

// Among the children of one node that a drafter claims, the surest.
std::optional<Claim> best_child(const TokenTree& tree, NodeId parent, std::int32_t drafter,
                                const Confidences& said) {
  std::optional<Claim> best;
  for (NodeId id = parent + 1; id < tree.size(); ++id) {
    if (tree.node(id).parent != parent) continue;
    for (const Claim& claim : said.of(id)) {
      if (claim.drafter == drafter && (!best || claim.chance > best->chance)) best = claim;
    }
  }
  return best;
}

struct Child {
  NodeId parent = kRoot;
  double chance = 0.0;  // given that the parent is right
  NodeId id = kNoNode;
};

void learn_at(const TokenTree& tree, NodeId at, Token next, const Confidences& said,
              AcceptanceTable& table, AcceptanceBias& bias) {
  for (NodeId id = at + 1; id < tree.size(); ++id) {
    if (tree.node(id).parent != at) continue;
    const bool right = tree.token(id) == next;
    for (const Claim& claim : said.of(id)) {
      const GuessClaim guess = said.guess(claim);
      const double chance = chance_of(guess, table, bias);
      table.learn(guess, right);
      bias.learn(guess.drafter, chance, right);
    }
  }
}

}  // namespace

void calibrate(TokenTree& tree, const AcceptanceTable& table, const AcceptanceBias& bias) {
  const Confidences said(tree);
  std::vector<Child> children;
  for (NodeId id = 1; id < tree.size(); ++id) {
    children.push_back({tree.node(id).parent, chance_at(id, said, table, bias), id});
  }
  // Parents come before their children, and among siblings the surest is served first.
  std::sort(children.begin(), children.end(), [](const Child& a, const Child& b) {
    if (a.parent != b.parent) return a.parent < b.parent;
    return a.chance != b.chance ? a.chance > b.chance : a.id < b.id;
  });
  NodeId parent = kNoNode;
  double left = 1.0;  // for further children
  for (const Child& child : children) {
    if (child.parent != parent) left = 1.0;
    parent = child.parent;
    const double chance = std::min(child.chance, left);
    left -= chance;
    tree.set_chance(child.id, static_cast<float>(chance) * tree.node(parent).chance);
  }
}

void learn_from(const TokenTree& proposed, std::span<const Token> emitted, DrafterMask asked,
                AcceptanceTable& table, AcceptanceBias& bias, CalibrationScore* score) {
  const Confidences said(proposed);
  if (score != nullptr) {
    TokenTree predicted = proposed;
    calibrate(predicted, table, bias);
    NodeId at = kRoot;
    for (const Token next : emitted) {
      const float before = predicted.node(at).chance;
      for (NodeId id = at + 1; id < predicted.size(); ++id) {
        const TokenTree::Node& node = predicted.node(id);
        if (node.parent != at || said.of(id).empty() || before <= 0.0f) continue;
        score->add(node.depth, static_cast<double>(node.chance / before), node.token == next);
      }
      at = predicted.child(at, next);
      if (at == kNoNode) break;
    }
  }
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
