// What a model can take back, found by trying it when it is loaded: logits after a rollback are
// compared with those of a fresh text. The ways back themselves are in llama_rollback.cc, trees and
// dropped cells in llama_commit.cc. Takes up to ten single steps in sequence 0. Tested by
// llama_rollback_test.cc and llama_tree_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "llama/files/model_file.h"
#include "llama/model/llama_model.h"

namespace outrider::llama {

class RollbackCheck {
 public:
  // `capabilities`: the model's own, which it goes by while it is tried. `n_snapshots`: tokens that
  // llama.cpp can take back in a recurrent state. `has_state`: something of a sequence is outside
  // of its cells. REQUIRES: the model is empty; all of them live longer than this
  RollbackCheck(LlamaModel& model, Capabilities& capabilities, std::int32_t n_snapshots,
                bool has_state, const ModelFacts& facts)
      : model_(model),
        capabilities_(capabilities),
        n_snapshots_(n_snapshots),
        has_state_(has_state),
        facts_(facts) {}

  // Sets what holds in the capabilities, with the reasons. The model is empty afterwards. Also the
  // first use of the weights, so that a model which cannot run fails here and not in a request.
  // Errors: LlamaModel::evaluate's.
  Status run();

 private:
  std::span<const float> no_states(std::size_t n_tokens);
  Status evaluate_one(std::span<const Token> prefix, Token token, bool keep,
                      std::vector<float>* row);
  Status check_branches();
  Status check_state();
  Status try_state();
  void refuse_speculation(const std::string& reason);
  void refuse_branches(const std::string& reason);

  LlamaModel& model_;
  Capabilities& capabilities_;
  std::int32_t n_snapshots_;
  bool has_state_;
  const ModelFacts& facts_;
  std::vector<float> no_states_;
};

}  // namespace outrider::llama
