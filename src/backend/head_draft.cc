#include "backend/head_draft.h"

#include <utility>
#include <vector>

#include "backend/target_costs.h"
#include "draft/base/drafter_plan.h"
#include "draft/model/block_drafter.h"
#include "draft/model/draft_model.h"
#include "llama/open_head.h"

namespace outrider {
namespace {

// A head's model, and the drafter that runs it.
template <typename Model>
class LoadedHead : public Draft {
 public:
  LoadedHead(std::shared_ptr<const Target> target, std::unique_ptr<Model> model,
             std::unique_ptr<Drafter> drafter, const Result<std::string>& identity,
             std::vector<std::string> notes)
      : target_(std::move(target)),
        model_(std::move(model)),
        drafter_(std::move(drafter)),
        identity_(identity.ok() ? *identity : ""),
        info_(info_of(model_->file()->facts())),
        notes_(std::move(notes)) {}

  Drafter& drafter() override { return *drafter_; }
  std::string identity() const override { return identity_; }
  const ModelInfo& info() const override { return info_; }
  const std::vector<std::string>& notes() const override { return notes_; }

 private:
  std::shared_ptr<const Target> target_;  // its vocabulary, and its context, which the model reads
  std::unique_ptr<Model> model_;
  std::unique_ptr<Drafter> drafter_;
  std::string identity_;
  ModelInfo info_;
  std::vector<std::string> notes_;
};

// A head that guesses token after token, each from its own state after the guess before.
Result<std::unique_ptr<Draft>> load_eagle3(const llama::HeadFile& head, const ModelOptions& options,
                                           const llama::LlamaModel& model,
                                           std::shared_ptr<const Target> target,
                                           const LoadHooks& hooks) {
  Result<std::unique_ptr<llama::LlamaModel>> opened =
      llama::open_eagle3(head, options, model, hooks);
  if (!opened.ok()) return opened.status();
  const Vocabulary& vocabulary = target->vocabulary();
  // Its first pair is the second token with the state of the first.
  const HeadOptions how{.name = kEagle3Name, .window = 512, .reads_first = false};
  std::unique_ptr<Drafter> drafter = std::make_unique<DraftModelDrafter>(
      **opened, vocabulary.size(),
      [&vocabulary](Token token) { return vocabulary.is_end_of_generation(token); },
      /*learns=*/true, how);
  const Result<std::string> identity = times_key(**opened, options);
  std::vector<std::string> notes = (*opened)->notes();
  return std::unique_ptr<Draft>(std::make_unique<LoadedHead<llama::LlamaModel>>(
      std::move(target), std::move(*opened), std::move(drafter), identity, std::move(notes)));
}

// A head that guesses a block at once.
Result<std::unique_ptr<Draft>> load_dflash(const llama::HeadFile& head, const ModelOptions& options,
                                           const llama::LlamaModel& model,
                                           std::shared_ptr<const Target> target,
                                           const LoadHooks& hooks) {
  Result<std::unique_ptr<llama::LlamaBlockModel>> opened =
      llama::open_dflash(head, options, model, hooks);
  if (!opened.ok()) return opened.status();
  const Vocabulary& vocabulary = target->vocabulary();
  std::unique_ptr<Drafter> drafter = std::make_unique<BlockDrafter>(
      **opened, vocabulary.size(),
      [&vocabulary](Token token) { return vocabulary.is_end_of_generation(token); });
  const BlockCapabilities& of_blocks = (*opened)->capabilities();
  Capabilities passes;
  passes.n_batch = of_blocks.n_batch;
  passes.max_width = of_blocks.most_guesses + 1;
  const Result<std::string> identity = times_key(passes, options);
  return std::unique_ptr<Draft>(std::make_unique<LoadedHead<llama::LlamaBlockModel>>(
      std::move(target), std::move(*opened), std::move(drafter), identity,
      std::vector<std::string>()));
}

}  // namespace

Result<std::unique_ptr<Draft>> load_head(const llama::HeadFile& head, const ModelOptions& options,
                                         std::shared_ptr<const Target> target,
                                         const LoadHooks& hooks) {
  const LoadedTarget* const loaded = dynamic_cast<const LoadedTarget*>(target.get());
  const llama::LlamaModel* const model = loaded != nullptr ? loaded->here() : nullptr;
  if (model == nullptr) {
    return unsupported("the head '" + head.path + "' cannot guess for '" + target->info().path +
                       "': a target in a process of its own does not hand out the hidden states "
                       "that a head reads");
  }
  switch (head.kind) {
    case llama::HeadKind::kEagle3:
      return load_eagle3(head, options, *model, std::move(target), hooks);
    case llama::HeadKind::kDflash:
      return load_dflash(head, options, *model, std::move(target), hooks);
    case llama::HeadKind::kNone:
      break;
  }
  return internal_error("'" + head.path + "' is no head");
}

}  // namespace outrider
