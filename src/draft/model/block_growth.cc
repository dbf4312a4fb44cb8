#include "draft/model/block_growth.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <queue>
#include <utility>

namespace outrider {
namespace {

// While nothing was learned of a head, by how much more its leads count than its probabilities say.
// With 1 a runner-up seems worth more than the next guess behind a likely one, and a tree of four
// nodes is accepted less often than a chain (docs/decisions.md).
constexpr float kPriorSteepness = 3.0f;

// 1 / (1 + exp(-steepness * lead)) of the confidence 1 / (1 + exp(-lead)).
float steeper(float confidence) {
  const float holds = std::pow(confidence, kPriorSteepness);
  const float fails = std::pow(1.0f - confidence, kPriorSteepness);
  return holds / (holds + fails);
}

class Growth {
 public:
  Growth(const DraftRequest& request, const Block& block);
  GrownBlock run();

 private:
  // A node of our tree.
  struct Placed {
    NodeId node = kRoot;  // in the request's tree
    float chance = 1.0f;
    float claim = 1.0f;
    std::int32_t n_children = 0;       // of ours
    std::unique_ptr<Sampler> sampler;  // the chain behind it, where chains have state
    Draw draw;                         // of its children, until the first of them is placed
  };
  // A token that may follow a node.
  struct Candidate {
    float chance;
    float claim;
    std::size_t order;  // of equal ones the first
    std::size_t parent;
    Token token;

    bool operator<(const Candidate& other) const {
      return chance != other.chance ? chance < other.chance : order > other.order;
    }
  };

  float chance_of(std::int32_t depth, float confidence) const;
  const DraftChoice& choice_behind(std::size_t index);
  DraftChoice choose(std::int32_t depth, Sampler& chain, std::uint64_t node) const;
  void look_behind(std::size_t index);
  void place(const Candidate& candidate);

  const DraftRequest& request_;
  const Block& block_;
  bool has_state_;
  GrownBlock grown_;
  std::vector<Placed> placed_;  // [nodes]
  std::priority_queue<Candidate> candidates_;
  std::vector<std::optional<DraftChoice>>
      choices_;             // [depths] where all nodes of one have the same
  DraftChoice own_choice_;  // else: of the node looked at last
  std::size_t n_candidates_ = 0;
  std::int32_t leaves_ = 1;
};

Growth::Growth(const DraftRequest& request, const Block& block)
    : request_(request),
      block_(block),
      has_state_(request.sampler->has_state()),
      choices_(static_cast<std::size_t>(block.n_depths)) {
  grown_.tree = TokenTree(request.text.back());
  grown_.rivals.emplace_back();
  placed_.emplace_back();
  if (has_state_) placed_[0].sampler = request.sampler->clone();
}

DraftChoice Growth::choose(std::int32_t depth, Sampler& chain, std::uint64_t node) const {
  const std::span<const float> row = block_.row(depth + 1);
  const std::int32_t most = std::min(request_.shape.branches, request_.max_nodes);
  return choose_draft(row, chain.apply(row),
                      {.shape = request_.shape,
                       .max_children = std::max(1, most),
                       .seed = request_.seed,
                       .root_position = request_.text.size() - 1,
                       .depth = depth,
                       .node = node,
                       .draws = request_.draws != nullptr,
                       .greedy = chain.greedy(),
                       .wants_confidence = true,
                       .sharpness = block_.sharpness});
}

// That a guess is accepted where the one before it was. Drawn ones come with their probabilities.
float Growth::chance_of(std::int32_t depth, float confidence) const {
  if (request_.guide != nullptr) return request_.guide->chance(depth, confidence);
  return request_.draws != nullptr ? confidence : steeper(confidence);
}

const DraftChoice& Growth::choice_behind(std::size_t index) {
  const std::int32_t depth = grown_.tree.node(static_cast<NodeId>(index)).depth;
  if (has_state_ || request_.draws != nullptr) {
    own_choice_ = choose(depth, has_state_ ? *placed_[index].sampler : *request_.sampler, index);
    return own_choice_;
  }
  std::optional<DraftChoice>& choice = choices_[static_cast<std::size_t>(depth)];
  if (!choice) choice = choose(depth, *request_.sampler, 0);
  return *choice;
}

// Its children become candidates.
void Growth::look_behind(std::size_t index) {
  const std::int32_t depth = grown_.tree.node(static_cast<NodeId>(index)).depth;
  if (depth == block_.n_depths) return;
  Placed& from = placed_[index];
  const bool drawn = request_.draws != nullptr;
  // Drawn tokens count only beside the note of what they were drawn from, and there is one note.
  if (drawn && request_.tree->node(from.node).draw != kOneHot) return;
  const DraftChoice& choice = choice_behind(index);
  grown_.rivals[index] = choice.rivals;
  if (drawn) from.draw = choice.draw;
  float least = 1.0f;
  for (std::size_t k = 0; k < choice.tokens.size(); ++k) {
    const float confidence = choice.confidence[k];
    float chance = chance_of(depth + 1, confidence);
    // What was drawn first is sent first.
    if (drawn) chance = least = std::min(least, chance);
    const bool guided = request_.guide != nullptr;
    const Candidate candidate{.chance = from.chance * chance,
                              .claim = from.claim * (guided ? confidence : chance),
                              .order = n_candidates_++,
                              .parent = index,
                              .token = choice.tokens[k]};
    if (k < from.draw.tokens.size()) from.draw.chances.push_back(candidate.claim);
    candidates_.push(candidate);
  }
}

void Growth::place(const Candidate& candidate) {
  Placed& parent = placed_[candidate.parent];
  if (parent.n_children++ > 0) ++leaves_;
  TokenTree& tree = *request_.tree;
  const NodeId node = tree.add(parent.node, candidate.token, candidate.claim, request_.mask);
  if (!parent.draw.tokens.empty()) {
    tree.set_draw(parent.node, request_.draws->add(std::move(parent.draw)));
    parent.draw = Draw();
  }
  Placed child;
  child.node = node;
  child.chance = candidate.chance;
  child.claim = candidate.claim;
  if (has_state_) {
    child.sampler = parent.sampler->clone();
    child.sampler->accept(candidate.token);
  }
  grown_.tree.add(static_cast<NodeId>(candidate.parent), candidate.token, candidate.claim, 1);
  grown_.rivals.emplace_back();
  placed_.push_back(std::move(child));
  if (!block_.is_end || !block_.is_end(candidate.token)) look_behind(placed_.size() - 1);
}

GrownBlock Growth::run() {
  look_behind(0);
  while (!candidates_.empty() && grown_.tree.drafted() < request_.max_nodes) {
    const Candidate best = candidates_.top();
    candidates_.pop();
    const bool needs_leaf = placed_[best.parent].n_children > 0;
    if (needs_leaf && leaves_ >= request_.shape.branches) continue;
    place(best);
  }
  return std::move(grown_);
}

}  // namespace

GrownBlock grow_block(const DraftRequest& request, const Block& block) {
  return Growth(request, block).run();
}

}  // namespace outrider
