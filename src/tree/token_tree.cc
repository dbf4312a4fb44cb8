#include "tree/token_tree.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace outrider {

TokenTree::TokenTree(Token root) { nodes_.push_back(Node{.token = root}); }

NodeId TokenTree::add(NodeId parent, Token token, float chance, DrafterMask proposed_by) {
  assert(parent >= 0 && parent < size());
  const float bounded = std::clamp(chance, 0.0f, node(parent).chance);
  const NodeId existing = child(parent, token);
  claims_.push_back({.node = existing == kNoNode ? size() : existing,
                     .drafter = std::countr_zero(proposed_by),
                     .chance = std::clamp(chance, 0.0f, 1.0f)});
  if (existing != kNoNode) {
    Node& merged = nodes_[static_cast<std::size_t>(existing)];
    merged.proposed_by |= proposed_by;
    merged.chance = std::max(merged.chance, bounded);
    return existing;
  }
  nodes_.push_back(Node{.token = token,
                        .parent = parent,
                        .depth = node(parent).depth + 1,
                        .chance = bounded,
                        .proposed_by = proposed_by,
                        .first_by = std::countr_zero(proposed_by)});
  return size() - 1;
}

void TokenTree::set_chance(NodeId node, float chance) {
  nodes_[static_cast<std::size_t>(node)].chance = chance;
  // Parents come first, so one pass reaches everything below.
  for (std::size_t i = static_cast<std::size_t>(node); i < nodes_.size(); ++i) {
    const float bound = nodes_[static_cast<std::size_t>(nodes_[i].parent)].chance;
    nodes_[i].chance = nodes_[i].chance < bound ? nodes_[i].chance : bound;
  }
}

void TokenTree::set_chances(std::span<const float> chances) {
  assert(chances.size() == nodes_.size());
  for (std::size_t i = 1; i < nodes_.size(); ++i) nodes_[i].chance = chances[i];
}

NodeId TokenTree::child(NodeId parent, Token token) const {
  for (NodeId id = parent + 1; id < size(); ++id) {
    if (node(id).parent == parent && node(id).token == token) return id;
  }
  return kNoNode;
}

bool TokenTree::has_proposed(DrafterMask drafters) const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [drafters](const Node& node) { return (node.proposed_by & drafters) != 0; });
}

bool TokenTree::is_chain() const {
  for (NodeId id = 1; id < size(); ++id) {
    if (node(id).parent != id - 1) return false;
  }
  return true;
}

std::int32_t TokenTree::max_depth() const {
  std::int32_t depth = 0;
  for (const Node& n : nodes_) depth = std::max(depth, n.depth);
  return depth;
}

std::vector<NodeId> TokenTree::leaves() const {
  std::vector<bool> has_child(nodes_.size(), false);
  for (NodeId id = 1; id < size(); ++id)
    has_child[static_cast<std::size_t>(node(id).parent)] = true;
  std::vector<NodeId> result;
  for (NodeId id = 0; id < size(); ++id) {
    if (!has_child[static_cast<std::size_t>(id)]) result.push_back(id);
  }
  return result;
}

std::vector<NodeId> TokenTree::path_to(NodeId id) const {
  std::vector<NodeId> path;
  for (NodeId at = id; at != kNoNode; at = node(at).parent) path.push_back(at);
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<NodeId> TokenTree::prune(const std::vector<bool>& keep) {
  assert(keep.size() == nodes_.size());
  std::vector<NodeId> new_id(nodes_.size(), kNoNode);
  std::vector<NodeId> old_id;
  std::vector<Node> kept;
  for (NodeId id = 0; id < size(); ++id) {
    Node n = node(id);
    if (id != kRoot) {
      const NodeId parent = new_id[static_cast<std::size_t>(n.parent)];
      if (!keep[static_cast<std::size_t>(id)] || parent == kNoNode) continue;
      n.parent = parent;
    }
    new_id[static_cast<std::size_t>(id)] = static_cast<NodeId>(kept.size());
    old_id.push_back(id);
    kept.push_back(n);
  }
  nodes_ = std::move(kept);
  std::vector<Claim> claims;
  for (Claim claim : claims_) {
    claim.node = new_id[static_cast<std::size_t>(claim.node)];
    if (claim.node != kNoNode) claims.push_back(claim);
  }
  claims_ = std::move(claims);
  return old_id;
}

std::string TokenTree::check_integrity() const {
  if (nodes_.empty()) return "no root";
  if (nodes_[0].parent != kNoNode || nodes_[0].depth != 0)
    return "the root has a parent or a depth";
  if (nodes_[0].proposed_by != 0) return "the root is marked as drafted";
  for (NodeId id = 0; id < size(); ++id) {
    const Node& n = node(id);
    const std::string where = "node " + std::to_string(id) + ": ";
    if (!(n.chance >= 0.0f && n.chance <= 1.0f)) return where + "chance outside [0, 1]";
    if (id == kRoot) continue;
    if (n.parent < 0 || n.parent >= id) return where + "parent does not come before it";
    if (n.depth != node(n.parent).depth + 1) return where + "depth is not its parent's plus one";
    if (n.chance > node(n.parent).chance) return where + "likelier than its parent";
    if (n.proposed_by == 0) return where + "nobody proposed it";
    if (child(n.parent, n.token) != id) return where + "a sibling carries the same token";
  }
  for (const Claim& claim : claims_) {
    if (claim.node <= kRoot || claim.node >= size()) return "a claim for a node that is not there";
  }
  return "";
}

}  // namespace outrider
