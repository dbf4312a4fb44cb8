#include <algorithm>

#include "base/clock.h"
#include "engine/step.h"
#include "plan/width_plan.h"

namespace outrider {
namespace {

// Node ids that could not be tokens of the target are dropped with what hangs below them. Whether
// there were any.
bool drop_foreign_tokens(TokenTree& tree, std::int32_t n_vocab) {
  std::vector<bool> keep(static_cast<std::size_t>(tree.size()), true);
  for (NodeId id = 1; id < tree.size(); ++id) {
    keep[static_cast<std::size_t>(id)] = tree.token(id) >= 0 && tree.token(id) < n_vocab;
  }
  const bool any = std::find(keep.begin(), keep.end(), false) != keep.end();
  if (any) tree.prune(keep);
  return any;
}

// The planner's chances, where it chooses.
void set_chances(Step& step, Sequence& s, bool pruned) {
  const AcceptanceTable& table = step.planner.acceptance();
  if (pruned) {
    calibrate(*s.sent, table, s.plan.bias);
    return;
  }
  s.chances.update(*s.proposed, table, s.plan.bias, &step.chances);
  s.sent->set_chances(s.chances.values());
}

// The children of a node: drawn ones in the order of their draw, others as they were proposed.
std::vector<NodeId> children_by_place(const TokenTree& tree, NodeId node, const Draws& draws) {
  std::vector<NodeId> children;
  const Draw* draw = draws.find(tree.node(node).draw);
  if (draw != nullptr) {
    for (const Token token : draw->tokens) {
      const NodeId child = tree.child(node, token);
      if (child != kNoNode) children.push_back(child);
    }
    return children;
  }
  for (NodeId id = node + 1; id < tree.size(); ++id) {
    if (tree.node(id).parent == node) children.push_back(id);
  }
  return children;
}

// The same tree, numbered depth by depth. Of equally likely nodes the earlier one is sent
// (plan/width_plan.h), and a drawn token that another drafter had proposed before it was drawn
// would be earlier than one that nobody had: its number must tell its place only.
TokenTree by_places(const TokenTree& tree, const Draws& draws) {
  TokenTree result(tree.token(kRoot));
  std::vector<NodeId> old_ids = {kRoot};  // [result.size()]
  for (NodeId to = kRoot; to < result.size(); ++to) {
    const NodeId from = old_ids[static_cast<std::size_t>(to)];
    result.set_draw(to, tree.node(from).draw);
    for (const NodeId child : children_by_place(tree, from, draws)) {
      const TokenTree::Node& n = tree.node(child);
      // Whose it was first, then who else proposed it.
      result.add(to, n.token, n.chance, DrafterMask{1} << n.first_by);
      result.add(to, n.token, n.chance, n.proposed_by);
      old_ids.push_back(child);
    }
  }
  return result;
}

// Whether a drawn token is sent must not depend on what it is (dist/draws.h). Another drafter may
// have proposed the same token and raised its estimate, or a sibling that would take its place: so
// beside drawn children no others stay, and drawn ones have the estimates they were drawn with. Nor
// may the order decide in which drafters proposed it.
void keep_draws_apart(TokenTree& tree, const Draws& draws) {
  std::vector<bool> keep(static_cast<std::size_t>(tree.size()), true);
  bool any = false;
  for (NodeId id = 1; id < tree.size(); ++id) {
    const Draw* draw = draws.find(tree.node(tree.node(id).parent).draw);
    if (draw == nullptr) continue;
    any = true;
    const std::vector<Token>::const_iterator drawn =
        std::find(draw->tokens.begin(), draw->tokens.end(), tree.token(id));
    if (drawn == draw->tokens.end()) {
      keep[static_cast<std::size_t>(id)] = false;
    } else {
      tree.set_chance(id, draw->chances[static_cast<std::size_t>(drawn - draw->tokens.begin())]);
    }
  }
  if (!any) return;
  tree.prune(keep);
  tree = by_places(tree, draws);
}

// Where the target takes chains only, the likeliest child of each node stays; of drawn ones, the
// one that was drawn first, whatever it is.
void keep_one_child_each(TokenTree& tree, const Draws& draws) {
  std::vector<bool> keep(static_cast<std::size_t>(tree.size()), false);
  NodeId at = kRoot;
  while (at != kNoNode) {
    keep[static_cast<std::size_t>(at)] = true;
    const Draw* draw = draws.find(tree.node(at).draw);
    NodeId next = kNoNode;
    if (draw != nullptr && !draw->tokens.empty()) next = tree.child(at, draw->tokens[0]);
    for (NodeId id = at + 1; draw == nullptr && id < tree.size(); ++id) {
      if (tree.node(id).parent != at) continue;
      if (next == kNoNode || tree.node(id).chance > tree.node(next).chance) next = id;
    }
    at = next;
  }
  tree.prune(keep);
}

// Fills the step up to a width that takes less time, with nodes that nobody proposed: they go
// behind a last node, where they need no further leaf.
void fill(std::span<WidthRequest> requests, std::int32_t n) {
  for (WidthRequest& request : requests) {
    TokenTree& tree = *request.tree;
    while (n > 0 && tree.size() < request.max_width) {
      tree.add(tree.size() - 1, tree.token(kRoot), 0.0f, kFillerMask);
      --n;
    }
  }
}

void plan_by_cost(Step& step, std::span<WidthRequest> requests, std::int32_t budget) {
  const std::vector<RankedNode> ranked = rank_nodes(requests, budget);
  std::vector<float> chances;
  for (const RankedNode& node : ranked) chances.push_back(node.chance);
  const Outlook best = best_outlook({.chances = chances,
                                     .n_ready = step.n_ready,
                                     .costs = &*step.costs,
                                     .spent_ms = step.draft_ms});
  keep_ranked(requests, std::span(ranked).first(static_cast<std::size_t>(best.nodes)));
  fill(requests, step.costs->filled(best.nodes) - best.nodes);
}

}  // namespace

void plan(Step& step) {
  // The machine's time, beside a made-up clock too: bench_planner reports what planning takes.
  const Stopwatch watch;
  const Capabilities& caps = step.target.capabilities();
  std::vector<WidthRequest> fixed;
  std::vector<WidthRequest> planned;
  std::int32_t budget = caps.n_batch - step.n_prefix;
  for (Part& part : step.parts) {
    if (!part.ready) continue;
    Sequence& s = *part.sequence;
    s.sent = s.proposed;
    const bool pruned = drop_foreign_tokens(*s.sent, caps.n_vocab);
    if (draws(s.request.rule)) keep_draws_apart(*s.sent, s.draws);
    const bool chain = caps.max_leaves == 1 || judges_chains_only(s.request.rule);
    if (s.planned) set_chances(step, s, pruned);
    if (chain) keep_one_child_each(*s.sent, s.draws);
    const std::int32_t room =
        step.target.room(s.seq) - static_cast<std::int32_t>(part.prefix.size());
    // Where a full context is shifted, what follows it follows another text: the step may not say
    // more than there is room for. Fillers could.
    const std::int32_t left =
        s.request.shift_keep < 0 ? room : static_cast<std::int32_t>(s.context_left(caps.n_ctx));
    (s.planned ? planned : fixed)
        .push_back({.tree = &*s.sent,
                    .max_width = std::max(1, std::min({s.width, room, left})),
                    .max_leaves = caps.max_leaves});
  }
  // The planner's requests have their roots in the batch whatever the others take.
  const std::int32_t n_planned = static_cast<std::int32_t>(planned.size());
  plan_widths(fixed, budget - n_planned);
  for (const WidthRequest& request : fixed) budget -= request.tree->size();
  if (n_planned > 0) plan_by_cost(step, planned, budget);
  step.plan_ms = watch.elapsed_ms();
  for (Part& part : step.parts) {
    if (part.ready && part.sequence->answered) part.sequence->stats.plan_ms += step.plan_ms;
  }
}

}  // namespace outrider
