// The prediction layers (MTP) of a target's own file: whether they guess, and opening them.
//
// Each is a context of its own on the target's weights, which reads the hidden states that the
// target hands out (llama/heads/hidden_states.h). Tested by tests/mtp_output_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "llama/files/gguf_header.h"
#include "llama/model/llama_model.h"
#include "model/model_options.h"

namespace outrider::llama {

struct PredictionPlan {
  bool wanted = false;  // the target hands out states for them
  std::string why_not;  // they do not guess; empty: they do
  std::string note;  // the same for the user, where the file has any and nobody switched them off

  // They were wanted, and could not be had: not with an ok status.
  void fails(const Status& why);
};

// By the `header` of the options' file and the options. In another process (isolate, workers) they
// are not wanted: the states would not reach this one. Nor beside a head of its own file, for which
// the target hands out `for_head` (may be none).
PredictionPlan plan_prediction(const ModelOptions& options, const HiddenStates& for_head,
                               const GgufHeader& header);

// One model for each layer, in their order, to be run as a chain (draft/model/head_chain.h).
// `target` was opened with `options`, from a file that was loaded with its prediction layers. Their
// cache is f16 whatever the target's is: a quantised one costs much of what a head gets right.
// Errors: kUnsupported where the target hands out no states; LlamaModel::create's.
Result<std::vector<std::unique_ptr<LlamaModel>>> open_prediction(const LlamaModel& target,
                                                                 const ModelOptions& options);

}  // namespace outrider::llama
