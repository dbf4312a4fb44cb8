// DraftGrowth: one request's tree while a draft model extends it.
//
// Idea. Best first: of all nodes proposed so far, the likeliest max_nodes make up the draft. A node
// is worth a place in the model's next pass if it is among them and its likeliest child would be
// too. With a chain that is simply the tip.
//
// The request's tree may hold other drafters' nodes; the tentative tree holds what the model has
// run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "draft/base/drafter.h"
#include "draft/model/draft_choice.h"

namespace outrider {

class DraftGrowth {
 public:
  // `tentative` is the model's tree, with the text's last token as its root. `sharpness`: see
  // ChoiceContext.
  DraftGrowth(const DraftRequest& request, TokenTree* tentative, float sharpness = 1.0f);

  const DraftRequest& request() const { return *request_; }
  const TokenTree& tentative() const { return *tentative_; }
  NodeId first_new() const { return first_new_; }

  // Adds what the next pass should run to the tentative tree, at most `room` nodes of it, and
  // returns how many that are. 0: the draft is as good as it gets. The first pass runs the root.
  // `max_leaves`, `max_width`: of the model's trees.
  std::int32_t plan_pass(std::int32_t room, std::int32_t max_leaves, std::int32_t max_width);

  // The pass was not run: takes its nodes from the tentative tree again. The draft is over then.
  void forget_pass();

  // The row for a node of the last pass. `is_end`: tokens that nothing follows; may be empty.
  // Returns who was best behind it.
  DraftRivals take_row(NodeId tentative_node, std::span<const float> row,
                       const std::function<bool(Token)>& is_end);

 private:
  struct Proposed {
    NodeId node;       // in the request's tree
    NodeId parent;     // in the tentative tree
    NodeId tentative;  // there, or kNoNode while it has not been run
    float chance;      // estimate
    float claim;       // the model's own
    bool is_end;
    std::unique_ptr<Sampler> sampler;  // the chain behind this node, when the chain has state
  };

  bool wants_pass(const std::vector<std::size_t>& chosen) const;
  float smallest_useful_chance() const;
  void propose(Proposed& from, const DraftChoice& choice, const std::function<bool(Token)>& is_end);

  const DraftRequest* request_;
  TokenTree* tentative_;
  float sharpness_;
  std::vector<Proposed> nodes_;  // [0]: the root
  std::int32_t leaves_ = 1;      // of our nodes
  NodeId first_new_ = 0;
  std::vector<std::size_t> by_tentative_;  // [its nodes] index into nodes_
};

}  // namespace outrider
