#include "llama/cells/tree_ids.h"

#include <algorithm>
#include <cassert>

namespace outrider::llama {

TreeIds::TreeIds(Id own, Id first_extra, std::int32_t n_extra)
    : own_(own), first_extra_(first_extra), held_(static_cast<std::size_t>(n_extra) + 1, 0) {}

bool TreeIds::is_grown(const TokenTree& tree, NodeId first_new) const {
  if (first_new != n_nodes() || tree.size() <= first_new) return false;
  for (NodeId id = 0; id < first_new; ++id) {
    if (tree.token(id) != node(id).token || tree.node(id).parent != node(id).parent) return false;
  }
  return true;
}

void TreeIds::begin(Pos length, std::int32_t n_prefix) {
  assert(!open_);
  open_ = true;
  length_ = length;
  base_ = length + n_prefix;
  nodes_.clear();
  tips_.assign(1, kNoNode);
}

// Begins an id at a new child of `parent`. It is given the text up to the first node that is not in
// the cache yet; the rest comes with the batch.
std::int32_t TreeIds::fresh(NodeId parent, NodeId first_new, std::vector<Copy>* copies) {
  NodeId old = parent;
  while (old >= first_new) old = node(old).parent;
  const std::int32_t index = n_ids();
  assert(static_cast<std::size_t>(index) < held_.size());
  const Pos begin = held_[static_cast<std::size_t>(index)];
  const Pos end = old == kNoNode ? length_ : base_ + node(old).depth + 1;
  const Id from = old == kNoNode ? own_ : id(node(old).index);
  if (begin < end) copies->push_back({.from = from, .to = id(index), .begin = begin, .end = end});
  tips_.push_back(kNoNode);
  return index;
}

void TreeIds::grow(const TokenTree& tree, std::vector<Copy>* copies) {
  assert(open_);
  const NodeId first_new = n_nodes();
  for (NodeId at = first_new; at < tree.size(); ++at) {
    const TokenTree::Node& added = tree.node(at);
    std::int32_t index = 0;
    if (added.parent != kNoNode) {
      Node& parent = nodes_[static_cast<std::size_t>(added.parent)];
      index = parent.has_child ? fresh(added.parent, first_new, copies) : parent.index;
      parent.has_child = true;
    }
    tips_[static_cast<std::size_t>(index)] = at;
    nodes_.push_back(
        {.token = added.token, .parent = added.parent, .depth = added.depth, .index = index});
  }
}

void TreeIds::list_ids(NodeId first, std::vector<Id>* ids,
                       std::vector<std::int32_t>* counts) const {
  const std::size_t n_new = static_cast<std::size_t>(n_nodes() - first);
  if (n_ids() == 1) {
    ids->insert(ids->end(), n_new, own_);
    counts->insert(counts->end(), n_new, 1);
    return;
  }
  const std::size_t first_count = counts->size();
  const std::size_t first_id = ids->size();
  counts->resize(first_count + n_new, 0);
  std::vector<std::int32_t> next(n_new, 0);  // where each node's next id goes
  for (const bool counting : {true, false}) {
    for (std::int32_t index = 0; index < n_ids(); ++index) {
      for (NodeId at = tips_[static_cast<std::size_t>(index)]; at >= first; at = node(at).parent) {
        const std::size_t i = static_cast<std::size_t>(at - first);
        if (counting) {
          ++(*counts)[first_count + i];
        } else {
          (*ids)[first_id + static_cast<std::size_t>(next[i]++)] = id(index);
        }
      }
    }
    if (!counting) break;
    std::int32_t total = 0;
    for (std::size_t i = 0; i < n_new; ++i) {
      next[i] = total;
      total += (*counts)[first_count + i];
    }
    ids->resize(first_id + static_cast<std::size_t>(total));
  }
}

void TreeIds::undo(NodeId first, std::vector<Removal>* removed) {
  assert(open_ && first >= 0 && first <= n_nodes());
  for (std::int32_t index = n_ids() - 1; index >= 0; --index) {
    NodeId& tip = tips_[static_cast<std::size_t>(index)];
    if (first > 0 && tip < first) continue;
    while (tip >= first && tip != kNoNode && node(tip).index == index) tip = node(tip).parent;
    // An id that began among the new nodes ends in another one's, or before the root.
    const bool began = index > 0 && (tip == kNoNode || node(tip).index != index);
    if (began || first == 0) {
      removed->push_back({.id = id(index), .from = length_});
      if (index > 0) {
        held_[static_cast<std::size_t>(index)] = length_;
        tips_.pop_back();
      }
    } else {
      removed->push_back({.id = id(index), .from = base_ + node(tip).depth + 1});
    }
  }
  nodes_.resize(static_cast<std::size_t>(first));
  for (Node& n : nodes_) n.has_child = false;
  for (const Node& n : nodes_) {
    if (n.parent != kNoNode) nodes_[static_cast<std::size_t>(n.parent)].has_child = true;
  }
  if (first == 0) open_ = false;
}

// Of the positions from `from` on at which the id with this index stands alone or for others that
// branch off it, those that must be parked. Cells grow along a path, so they come first.
void TreeIds::park_segment(std::int32_t index, Pos from, std::span<const std::int32_t> cells,
                           std::int32_t park_below, std::vector<Copy>* parked) const {
  Pos begin = base_;
  Pos end = -1;
  NodeId at = tips_[static_cast<std::size_t>(index)];
  for (; at != kNoNode && node(at).index == index && base_ + node(at).depth >= from;
       at = node(at).parent) {
    begin = base_ + node(at).depth;
    const std::size_t i = static_cast<std::size_t>(n_prefix() + at);
    if (end < 0 && cells[i] < park_below) end = begin + 1;
  }
  if (index == 0 && at == kNoNode) {
    for (Pos pos = base_ - 1; pos >= from; --pos) {
      begin = pos;
      if (end < 0 && cells[static_cast<std::size_t>(pos - length_)] < park_below) end = pos + 1;
    }
  }
  if (end > begin) parked->push_back({.from = id(index), .to = 0, .begin = begin, .end = end});
}

TreeIds::Settlement TreeIds::settle(bool kept, std::span<const NodeId> path,
                                    std::span<const std::int32_t> cells, std::int32_t park_below) {
  assert(open_ && (kept || path.empty()));
  assert(cells.size() == static_cast<std::size_t>(n_tokens()));
  Settlement settlement;
  const Pos end = kept ? base_ + static_cast<Pos>(path.size()) : length_;
  std::vector<bool> on_path(nodes_.size(), false);
  for (const NodeId at : path) on_path[static_cast<std::size_t>(at)] = true;

  for (std::int32_t index = 0; index < n_ids(); ++index) {
    // The id shares the beginning of the path, up to where they part.
    NodeId at = tips_[static_cast<std::size_t>(index)];
    while (at != kNoNode && !on_path[static_cast<std::size_t>(at)]) at = node(at).parent;
    const Pos shared = !kept ? length_ : at == kNoNode ? base_ : base_ + node(at).depth + 1;
    if (shared < held(index, length_)) {
      park_segment(index, shared, cells, park_below, &settlement.parked);
      settlement.removed.push_back({.id = id(index), .from = shared});
    }
    if (index > 0) held_[static_cast<std::size_t>(index)] = shared;
    if (index == 0 && shared < end) {
      const Id from = id(node(path.back()).index);
      settlement.copied.push_back({.from = from, .to = own_, .begin = shared, .end = end});
    }
  }
  nodes_.clear();
  tips_.clear();
  open_ = false;
  return settlement;
}

void TreeIds::truncate(Pos length, std::vector<Removal>* removed) {
  assert(!open_);
  for (std::size_t i = 1; i < held_.size(); ++i) {
    if (held_[i] <= length) continue;
    removed->push_back({.id = id(static_cast<std::int32_t>(i)), .from = length});
    held_[i] = length;
  }
}

void TreeIds::detach() {
  assert(!open_ || n_ids() == 1);
  std::fill(held_.begin(), held_.end(), 0);
}

void TreeIds::lose() {
  open_ = false;
  nodes_.clear();
  tips_.clear();
  std::fill(held_.begin(), held_.end(), 0);
}

Pos TreeIds::held(std::int32_t index, Pos length) const {
  if (open_ && index < n_ids()) {
    const NodeId tip = tips_[static_cast<std::size_t>(index)];
    return tip == kNoNode ? base_ : base_ + node(tip).depth + 1;
  }
  return index == 0 ? length : held_[static_cast<std::size_t>(index)];
}

}  // namespace outrider::llama
