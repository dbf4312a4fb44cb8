#include "lab/replay_drafter.h"

namespace outrider::lab {

void ReplayDrafter::set_text(std::size_t n_prompt, std::vector<Token> tokens) {
  n_prompt_ = n_prompt;
  tokens_ = std::move(tokens);
}

Status ReplayDrafter::begin(SeqId, std::size_t) {
  proposed_ = 0;
  return Status();
}

Status ReplayDrafter::draft(std::span<DraftRequest> requests) {
  for (DraftRequest& request : requests) {
    NodeId tip = kRoot;
    const std::size_t said = request.text.size() - n_prompt_;
    for (std::size_t i = 0; i < static_cast<std::size_t>(request.max_nodes); ++i) {
      if (said + i >= tokens_.size()) break;
      Token token = tokens_[said + i];
      if (++proposed_ % 5 == 0) token = token == 0 ? 1 : token - 1;  // another valid id
      tip = request.tree->add(tip, token, request.tree->node(tip).chance * 0.9f, request.mask);
    }
  }
  return Status();
}

}  // namespace outrider::lab
