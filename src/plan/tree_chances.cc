#include "plan/tree_chances.h"

#include <algorithm>
#include <functional>

namespace outrider {
namespace {

constexpr float kNoChance = -1.0f;  // of a node that is new

}  // namespace

void FallingChances::insert(float chance) {
  values_.insert(std::upper_bound(values_.begin(), values_.end(), chance, std::greater<float>()),
                 chance);
}

void FallingChances::replace(float before, float after) {
  values_.erase(std::lower_bound(values_.begin(), values_.end(), before, std::greater<float>()));
  insert(after);
}

void TreeChances::clear() {
  claims_.clear();
  nodes_.clear();
  values_.clear();
  n_claims_ = 0;
}

void TreeChances::update(const TokenTree& tree, const AcceptanceTable& table,
                         const AcceptanceBias& bias, FallingChances* falling) {
  claims_.update(tree);
  first_changed_ = tree.size();
  add_nodes(tree);
  note_claims(tree);
  compute_own(tree, table, bias);
  compute_chances(falling);
}

void TreeChances::add_nodes(const TokenTree& tree) {
  for (NodeId id = static_cast<NodeId>(nodes_.size()); id < tree.size(); ++id) {
    nodes_.emplace_back();
    if (id == kRoot) {
      values_.push_back(1.0f);
      nodes_.back().own_changed = false;
      continue;
    }
    values_.push_back(kNoChance);
    changed_from(id);
    const NodeId parent = tree.node(id).parent;
    nodes_.back().parent = parent;
    NodeId& last = node(parent).last_child;
    (last == kNoNode ? node(parent).first_child : node(last).next_sibling) = id;
    last = id;
  }
}

void TreeChances::note_claims(const TokenTree& tree) {
  for (; n_claims_ < tree.claims().size(); ++n_claims_) {
    const NodeId id = tree.claims()[n_claims_].node;
    node(id).own_changed = true;
    changed_from(id);
    note_children(id);
  }
}

void TreeChances::note_children(NodeId parent) {
  for (NodeId id = node(parent).first_child; id != kNoNode; id = node(id).next_sibling) {
    node(id).own_changed = true;
    changed_from(id);
  }
}

void TreeChances::compute_own(const TokenTree& tree, const AcceptanceTable& table,
                              const AcceptanceBias& bias) {
  for (NodeId id = first_changed_; id < tree.size(); ++id) {
    Node& n = node(id);
    if (!n.own_changed) continue;
    n.own_changed = false;
    double best = 0.0;
    claims_.for_each(id, [&](const Claim& claim) {
      const GuessClaim guess = claims_.guess(tree, claim);
      best = std::max(best, bias.shifted(guess.drafter, table.chance(guess)));
    });
    if (best == n.own && n.share >= 0.0) continue;
    n.own = best;
    node(n.parent).children_changed = true;
    changed_from(n.parent);
  }
}

// The likeliest child first; among equals the one that came first.
void TreeChances::share_out(NodeId parent) {
  siblings_.clear();
  for (NodeId id = node(parent).first_child; id != kNoNode; id = node(id).next_sibling) {
    siblings_.push_back(id);
  }
  std::sort(siblings_.begin(), siblings_.end(), [this](NodeId a, NodeId b) {
    return node(a).own != node(b).own ? node(a).own > node(b).own : a < b;
  });
  double left = 1.0;
  for (const NodeId id : siblings_) {
    const double share = std::min(node(id).own, left);
    left -= share;
    if (share == node(id).share) continue;
    node(id).share = share;
    node(id).chance_changed = true;
  }
}

// Parents come first, so a change reaches all below it in one pass.
void TreeChances::compute_chances(FallingChances* falling) {
  for (NodeId id = first_changed_; id < static_cast<NodeId>(nodes_.size()); ++id) {
    Node& n = node(id);
    if (n.children_changed) share_out(id);
    n.children_changed = false;
    if (!n.chance_changed) continue;
    n.chance_changed = false;
    float& value = values_[static_cast<std::size_t>(id)];
    const float before = value;
    value = static_cast<float>(n.share) * values_[static_cast<std::size_t>(n.parent)];
    if (value == before) continue;
    for (NodeId child = n.first_child; child != kNoNode; child = node(child).next_sibling) {
      node(child).chance_changed = true;
    }
    if (falling == nullptr) continue;
    if (before == kNoChance) {
      falling->insert(value);
    } else {
      falling->replace(before, value);
    }
  }
}

}  // namespace outrider
