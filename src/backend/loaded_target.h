// LoadedTarget: a model, wherever it runs, beside the file that has its vocabulary.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/llama_loader.h"
#include "base/status.h"
#include "draft/model/draft_model.h"
#include "draft/model/head_chain.h"
#include "llama/files/model_file.h"
#include "llama/open_target.h"
#include "llama/sampling/sampler_chain.h"
#include "llama/vocabulary/vocabulary.h"
#include "serve/experiences.h"
#include "serve/loader.h"

namespace outrider {

// For drafters: which tokens end a text. `vocabulary` must outlive it.
inline std::function<bool(Token)> ends_of(const Vocabulary& vocabulary) {
  return [&vocabulary](Token token) { return vocabulary.is_end_of_generation(token); };
}

class LoadedTarget : public Target {
 public:
  struct Parts {
    std::unique_ptr<LanguageModel> model;
    std::shared_ptr<llama::ModelFile> file;  // only its vocabulary is used
    Exactness exactness;
    ExactMode exact_mode = ExactMode::kAuto;
    ModelInfo info;
    std::vector<std::string> notes;
    PassCosts costs = {};
    std::string state_identity = {};                            // Target::state_identity
    std::unique_ptr<ExperienceStore> experiences = nullptr;     // may be null
    std::vector<std::unique_ptr<llama::LlamaModel>> head = {};  // prediction layers; may be none
    std::string no_head_reason = {};                            // why there are none
  };

  explicit LoadedTarget(Parts parts) : parts_(std::move(parts)) {
    if (parts_.head.empty()) return;
    std::vector<LanguageModel*> layers;
    for (const std::unique_ptr<llama::LlamaModel>& layer : parts_.head) {
      layers.push_back(layer.get());
    }
    if (layers.size() > 1) chain_.emplace(layers);
    LanguageModel& head = chain_ ? static_cast<LanguageModel&>(*chain_) : *layers[0];
    head_.emplace(head, vocabulary().size(), ends_of(vocabulary()), /*learns=*/true,
                  HeadOptions{.name = kMtpKind.name});
  }

  LanguageModel& model() override { return *parts_.model; }
  // The model where it runs in this process; else null.
  const llama::LlamaModel* here() const {
    return dynamic_cast<const llama::LlamaModel*>(parts_.model.get());
  }
  const Capabilities& capabilities() const override { return parts_.model->capabilities(); }
  const llama::LlamaVocabulary& vocabulary() const override { return parts_.file->vocabulary(); }
  const Exactness& exactness() const override { return parts_.exactness; }
  ExactMode exact_mode() const override { return parts_.exact_mode; }
  const ModelInfo& info() const override { return parts_.info; }
  const std::vector<std::string>& notes() const override { return parts_.notes; }
  PassCosts costs() const override { return parts_.costs; }
  std::string state_identity() const override { return parts_.state_identity; }
  ExperienceStore* experiences() override { return parts_.experiences.get(); }
  Drafter* head() override { return head_ ? &*head_ : nullptr; }
  std::string no_head_reason() const override { return parts_.no_head_reason; }
  std::uint64_t head_bytes() const override {
    std::uint64_t bytes = parts_.head.empty() ? 0 : parts_.file->facts().prediction_bytes;
    for (const std::unique_ptr<llama::LlamaModel>& layer : parts_.head) {
      bytes += layer->cache_bytes();
    }
    return bytes;
  }

  Result<std::unique_ptr<Sampler>> make_sampler(const SamplingOptions& options) const override {
    return llama::make_sampler(options, vocabulary());
  }

 private:
  Parts parts_;
  std::optional<HeadChain> chain_;  // where there are several layers
  std::optional<DraftModelDrafter> head_;
};

inline llama::TargetOptions target_options(const LlamaLoaderOptions& options, std::int32_t widest) {
  return {.widest = widest,
          .speculation = options.speculation,
          .probe_budget_ms = options.probe_budget_ms,
          .cache_folder = options.cache_folder,
          .probe_progress = options.probe_progress};
}

// A target in a process of its own (ModelOptions::isolate, or workers). The model runs in a child;
// the vocabulary, which the child has survived reading, is read again in this process. Workers are
// asked before the child is started.
// Errors: ModelLoader::load_target's; kNotFound for a worker that is not there and when the command
// outrider cannot be found (remote/host_program.h); kInternal when the child dies.
Result<LoadedTarget::Parts> load_isolated_target(const ModelOptions& options,
                                                 const LlamaLoaderOptions& how,
                                                 const LoadHooks& hooks);

}  // namespace outrider
