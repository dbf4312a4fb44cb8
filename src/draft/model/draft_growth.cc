#include "draft/model/draft_growth.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace outrider {
namespace {

// The chance that one more drafted token is accepted, before anything was learned about a pair: a
// Q3_K_S draft of its own Q4_1 model gave 0.67 at temperature 1 and 0.72 at 0.7. Runners-up share
// what is left in the same proportion.
constexpr float kPriorAcceptance = 0.7f;

}  // namespace

DraftGrowth::DraftGrowth(const DraftRequest& request, TokenTree* tentative, float sharpness)
    : request_(&request), tentative_(tentative), sharpness_(sharpness) {
  nodes_.push_back({.node = kRoot,
                    .parent = kNoNode,
                    .tentative = kNoNode,
                    .chance = 1.0f,
                    .claim = 1.0f,
                    .is_end = false,
                    .sampler = nullptr});
}

// What a node must be above to be among the likeliest max_nodes; 0 while there is room for any.
float DraftGrowth::smallest_useful_chance() const {
  const std::size_t most = static_cast<std::size_t>(request_->max_nodes);
  if (nodes_.size() - 1 < most) return 0.0f;
  std::vector<float> chances;
  for (std::size_t i = 1; i < nodes_.size(); ++i) chances.push_back(nodes_[i].chance);
  const std::vector<float>::iterator last = chances.begin() + static_cast<std::ptrdiff_t>(most) - 1;
  std::nth_element(chances.begin(), last, chances.end(), std::greater<float>());
  return *last;
}

std::int32_t DraftGrowth::plan_pass(std::int32_t room, std::int32_t max_leaves,
                                    std::int32_t max_width) {
  if (nodes_[0].tentative == kNoNode) {
    nodes_[0].tentative = kRoot;
    by_tentative_.assign(1, 0);
    return 1;
  }
  first_new_ = tentative_->size();
  const float bar = smallest_useful_chance();
  std::vector<std::size_t> candidates;
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const Proposed& p = nodes_[i];
    if (p.tentative != kNoNode || p.is_end) continue;
    if (p.chance * kPriorAcceptance > bar && p.chance >= bar) candidates.push_back(i);
  }
  std::stable_sort(candidates.begin(), candidates.end(), [&](std::size_t a, std::size_t b) {
    return nodes_[a].chance > nodes_[b].chance;
  });
  // With a guide the likeliest node alone: a second row makes a pass dearer than it is likely to
  // give (docs/decisions.md, "A draft model branches where the planner chooses").
  const std::int32_t most = request_->guide != nullptr ? std::min(room, 1) : room;
  TokenTree grown = *tentative_;
  std::vector<std::size_t> chosen;
  std::vector<NodeId> places;  // [chosen] in the grown tree
  for (const std::size_t i : candidates) {
    if (std::ssize(chosen) >= most || grown.size() == max_width) break;
    TokenTree more = grown;
    const Token token = request_->tree->token(nodes_[i].node);
    const NodeId at = more.add(nodes_[i].parent, token, 0.5f, request_->mask);
    if (more.leaves().size() > static_cast<std::size_t>(max_leaves)) continue;
    grown = std::move(more);
    chosen.push_back(i);
    places.push_back(at);
  }
  // A pass that it grants is timed from then on, so only one that can be made is asked for.
  if (request_->guide != nullptr && !wants_pass(chosen)) return 0;
  *tentative_ = std::move(grown);
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    nodes_[chosen[k]].tentative = places[k];
    by_tentative_.push_back(chosen[k]);
  }
  return static_cast<std::int32_t>(chosen.size());
}

bool DraftGrowth::wants_pass(const std::vector<std::size_t>& chosen) const {
  if (chosen.empty()) {
    request_->guide->ended();
    return false;
  }
  const Proposed& tip = nodes_[chosen[0]];
  return request_->guide->another_pass(tip.chance, request_->tree->node(tip.node).depth);
}

void DraftGrowth::forget_pass() {
  std::vector<bool> keep(static_cast<std::size_t>(tentative_->size()), true);
  for (NodeId id = first_new_; id < tentative_->size(); ++id)
    keep[static_cast<std::size_t>(id)] = false;
  tentative_->prune(keep);
}

DraftRivals DraftGrowth::take_row(NodeId tentative_node, std::span<const float> row,
                                  const std::function<bool(Token)>& is_end) {
  Proposed& from = nodes_[by_tentative_[static_cast<std::size_t>(tentative_node)]];
  if (tentative_node == kRoot && request_->sampler->has_state()) {
    from.sampler = request_->sampler->clone();
  }
  Sampler& chain = from.sampler ? *from.sampler : *request_->sampler;
  const DraftShape& shape = request_->shape;
  const std::int32_t branches =
      shape.model_branches > 0 ? std::min(shape.model_branches, shape.branches) : shape.branches;
  const ChoiceContext context{.shape = shape,
                              .max_children = std::max(1, 1 + branches - leaves_),
                              .seed = request_->seed,
                              .root_position = request_->text.size() - 1,
                              .depth = tentative_->node(tentative_node).depth,
                              .node = static_cast<std::uint64_t>(tentative_node),
                              .draws = request_->draws != nullptr,
                              .greedy = chain.greedy(),
                              .wants_confidence = request_->guide != nullptr,
                              .sharpness = sharpness_};
  const DraftChoice choice = choose_draft(row, chain.apply(row), context);
  propose(from, choice, is_end);
  return choice.rivals;
}

void DraftGrowth::propose(Proposed& from, const DraftChoice& choice,
                          const std::function<bool(Token)>& is_end) {
  TokenTree& tree = *request_->tree;
  const NodeId node = from.node;
  const NodeId parent = from.tentative;
  if (!choice.draw.tokens.empty()) {
    // Drawn tokens count only beside the note of what they were drawn from, and there is one note.
    if (tree.node(node).draw != kOneHot) return;
  }
  const std::int32_t depth = tree.node(node).depth + 1;
  float chance = from.chance * kPriorAcceptance;
  float claim = chance;
  Draw draw = choice.draw;
  std::vector<Proposed> children;
  for (std::size_t k = 0; k < choice.tokens.size(); ++k) {
    const Token token = choice.tokens[k];
    if (!choice.confidence.empty()) {
      claim = from.claim * choice.confidence[k];
      chance = from.chance * request_->guide->chance(depth, choice.confidence[k]);
    }
    Proposed child{.node = tree.add(node, token, claim, request_->mask),
                   .parent = parent,
                   .tentative = kNoNode,
                   .chance = chance,
                   .claim = claim,
                   .is_end = is_end && is_end(token),
                   .sampler = nullptr};
    if (from.sampler) {
      child.sampler =
          k + 1 == choice.tokens.size() ? std::move(from.sampler) : from.sampler->clone();
      child.sampler->accept(token);
    }
    children.push_back(std::move(child));
    if (k < draw.tokens.size()) draw.chances.push_back(claim);
    chance *= 1.0f - kPriorAcceptance;
    claim = chance;
  }
  if (!draw.tokens.empty()) {
    tree.set_draw(node, request_->draws->add(std::move(draw)));
  }
  if (children.size() > 1) leaves_ += static_cast<std::int32_t>(children.size()) - 1;
  std::move(children.begin(), children.end(), std::back_inserter(nodes_));
}

}  // namespace outrider
