#include "plan/width_plan.h"

#include <algorithm>

namespace outrider {
namespace {

struct Candidate {
  float chance;
  std::int32_t depth;
  std::size_t request;
  NodeId node;
};

bool better(const Candidate& a, const Candidate& b) {
  if (a.chance != b.chance) return a.chance > b.chance;
  if (a.depth != b.depth) return a.depth < b.depth;
  if (a.request != b.request) return a.request < b.request;
  return a.node < b.node;
}

}  // namespace

std::vector<RankedNode> rank_nodes(std::span<const WidthRequest> requests, std::int32_t budget) {
  std::vector<Candidate> candidates;
  std::vector<std::vector<bool>> keep(requests.size());
  std::vector<std::int32_t> width(requests.size(), 1);
  std::vector<std::int32_t> leaves(requests.size(), 1);
  std::vector<std::vector<bool>> has_child(requests.size());  // one that is kept
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const TokenTree& tree = *requests[r].tree;
    keep[r].assign(static_cast<std::size_t>(tree.size()), false);
    keep[r][0] = true;
    has_child[r].assign(static_cast<std::size_t>(tree.size()), false);
    for (NodeId id = 1; id < tree.size(); ++id) {
      candidates.push_back({tree.node(id).chance, tree.node(id).depth, r, id});
    }
  }
  std::sort(candidates.begin(), candidates.end(), better);
  std::vector<RankedNode> ranked;
  for (const Candidate& c : candidates) {
    if (static_cast<std::int64_t>(requests.size() + ranked.size()) >= budget) break;
    // A node that its request has no room for is passed over; the nodes below it rank behind it, so
    // they find the request full as well.
    const WidthRequest& request = requests[c.request];
    if (width[c.request] >= request.max_width) continue;
    const std::size_t parent = static_cast<std::size_t>(request.tree->node(c.node).parent);
    if (!keep[c.request][parent]) continue;
    if (has_child[c.request][parent] && leaves[c.request] >= request.max_leaves) continue;
    leaves[c.request] += has_child[c.request][parent] ? 1 : 0;
    has_child[c.request][parent] = true;
    keep[c.request][static_cast<std::size_t>(c.node)] = true;
    ++width[c.request];
    ranked.push_back({.request = c.request, .node = c.node, .chance = c.chance});
  }
  return ranked;
}

void keep_ranked(std::span<WidthRequest> requests, std::span<const RankedNode> nodes) {
  std::vector<std::vector<bool>> keep(requests.size());
  for (std::size_t r = 0; r < requests.size(); ++r) {
    keep[r].assign(static_cast<std::size_t>(requests[r].tree->size()), false);
    keep[r][0] = true;
  }
  for (const RankedNode& n : nodes) keep[n.request][static_cast<std::size_t>(n.node)] = true;
  for (std::size_t r = 0; r < requests.size(); ++r) requests[r].tree->prune(keep[r]);
}

void plan_widths(std::span<WidthRequest> requests, std::int32_t budget) {
  keep_ranked(requests, rank_nodes(requests, budget));
}

}  // namespace outrider
