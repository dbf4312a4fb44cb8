#include "llama/prediction.h"

#include <utility>

#include "llama/heads/hidden_states.h"

namespace outrider::llama {

void PredictionPlan::fails(const Status& why) {
  if (why.ok()) return;
  why_not = why.message();
  note = "the file's prediction layers (MTP) do not guess: " + why_not;
}

PredictionPlan plan_prediction(const ModelOptions& options, const HiddenStates& for_head,
                               const GgufHeader& header) {
  PredictionPlan plan;
  if (header.n_prediction == 0) {
    plan.why_not = "the target's file has no prediction layers (MTP)";
  } else if (options.mtp == HeadChoice::kOff) {
    plan.why_not = "the target's prediction layers are switched off (mtp=off)";
  } else if (!has_prediction_layers(header.architecture)) {
    plan.fails(unsupported("llama.cpp does not evaluate those of the architecture " +
                           header.architecture));
  } else if (for_head.any()) {
    plan.fails(unsupported("the head '" + options.head + "' guesses, which reads other states"));
  } else {
    plan.wanted = !options.isolate && options.workers.empty();
  }
  return plan;
}

Result<std::vector<std::unique_ptr<LlamaModel>>> open_prediction(const LlamaModel& target,
                                                                 const ModelOptions& options) {
  const std::string& why = target.capabilities().hidden_reason;
  if (!why.empty()) return unsupported(why);
  ContextSettings settings = target.settings();
  settings.hidden = {};
  settings.prediction = true;
  settings.type_k = settings.type_v = "f16";
  settings.max_width = kMaxStepWidth;
  settings.n_cells = 0;
  settings.cores = threads::Cores::kLeft;  // its bits are nobody's text
  std::vector<std::unique_ptr<LlamaModel>> layers;
  for (std::int32_t i = 0; i < target.file()->facts().n_prediction; ++i) {
    settings.prediction_layer = i;
    Result<std::unique_ptr<LlamaModel>> layer =
        LlamaModel::create(target.file(), options, settings);
    if (!layer.ok()) return layer.status();
    layers.push_back(std::move(*layer));
  }
  return layers;
}

}  // namespace outrider::llama
