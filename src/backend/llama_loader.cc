#include "backend/llama_loader.h"

#include <string>
#include <utility>
#include <vector>

#include "backend/isolated_target.h"
#include "backend/loaded_target.h"
#include "draft/draft_model.h"
#include "llama/open_target.h"
#include "llama/vocab_match.h"
#include "llama/vocabulary.h"

namespace outrider {
namespace {

class LoadedDraft : public Draft {
 public:
  // `target` owns the vocabulary.
  LoadedDraft(std::shared_ptr<const Target> target, const llama::LlamaVocabulary& vocabulary,
              std::unique_ptr<llama::LlamaModel> model)
      : target_(std::move(target)),
        model_(std::move(model)),
        info_(info_of(model_->file()->facts())),
        drafter_(*model_, vocabulary.size(),
                 [&vocabulary](Token token) { return vocabulary.is_end_of_generation(token); }) {}

  Drafter& drafter() override { return drafter_; }
  const ModelInfo& info() const override { return info_; }
  const std::vector<std::string>& notes() const override { return model_->notes(); }

 private:
  std::shared_ptr<const Target> target_;
  std::unique_ptr<llama::LlamaModel> model_;
  ModelInfo info_;
  DraftModelDrafter drafter_;
};

}  // namespace

Result<std::unique_ptr<Target>> LlamaLoader::load_target(const ModelOptions& options,
                                                         const LoadHooks& caller_hooks) {
  // Reading the file is the first half of the way, the probe the second.
  LlamaLoaderOptions how = options_;
  LoadHooks hooks = caller_hooks;
  if (!how.probe_progress && caller_hooks.progress) {
    hooks.progress = [&](double fraction) { caller_hooks.progress(0.5 * fraction); };
    how.probe_progress = [&](double fraction) { caller_hooks.progress(0.5 + 0.5 * fraction); };
  }
  if (options.isolate || !options.workers.empty()) {
    return load_isolated_target(options, how, hooks);
  }
  Result<llama::OpenedTarget> opened =
      llama::open_target(options, hooks, target_options(how, options.widest));
  if (!opened.ok()) return opened.status();
  ModelInfo info = info_of(opened->file->facts());
  return std::unique_ptr<Target>(
      std::make_unique<LoadedTarget>(LoadedTarget::Parts{.model = std::move(opened->model),
                                                         .file = std::move(opened->file),
                                                         .exactness = std::move(opened->exactness),
                                                         .info = std::move(info),
                                                         .notes = std::move(opened->notes)}));
}

Result<std::unique_ptr<Draft>> LlamaLoader::load_draft(const ModelOptions& options,
                                                       std::shared_ptr<const Target> target,
                                                       const LoadHooks& hooks) {
  if (options.isolate || !options.workers.empty()) {
    return invalid_argument("the draft model '" + options.path +
                            "' cannot be isolated or run on workers; only a target can");
  }
  const llama::LlamaVocabulary* vocabulary =
      dynamic_cast<const llama::LlamaVocabulary*>(&target->vocabulary());
  if (vocabulary == nullptr) {
    return unsupported("the draft model '" + options.path + "' cannot draft for '" +
                       target->info().path + "': that one was not opened by llama.cpp");
  }
  Result<std::unique_ptr<llama::LlamaModel>> model = llama::open_draft(options, hooks);
  if (!model.ok()) return model.status();
  const Status match =
      llama::require_usable(llama::match_vocabularies(*vocabulary, (*model)->file()->vocabulary()));
  if (!match.ok()) {
    return match.with_context("the draft model '" + options.path + "' cannot draft for '" +
                              target->info().path + "'");
  }
  return std::unique_ptr<Draft>(
      std::make_unique<LoadedDraft>(std::move(target), *vocabulary, std::move(*model)));
}

}  // namespace outrider
