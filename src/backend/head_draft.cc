#include "backend/head_draft.h"

#include <utility>

#include "backend/target_costs.h"
#include "draft/model/block_drafter.h"
#include "draft/model/draft_model.h"
#include "llama/files/gguf_header.h"
#include "llama/open_head.h"

namespace outrider {
namespace {

static_assert(kEagle3Kind.name == llama::kEagle3Head.architecture);
static_assert(kDflashKind.name == llama::kDflashHead.architecture);

// As a draft, whose model needs the target's vocabulary and its context.
template <typename Model>
std::unique_ptr<Draft> draft_of(std::shared_ptr<const Target> target, std::unique_ptr<Model> model,
                                Draft parts) {
  parts.info = model->file()->facts();
  parts.models = std::make_shared<std::pair<std::shared_ptr<const Target>, std::unique_ptr<Model>>>(
      std::move(target), std::move(model));
  return std::make_unique<Draft>(std::move(parts));
}

// A head that guesses token after token, each from its own state after the guess before.
Result<std::unique_ptr<Draft>> load_eagle3(const llama::HeadFile& head, const ModelOptions& options,
                                           const llama::LlamaModel& model,
                                           std::shared_ptr<const Target> target,
                                           const LoadHooks& hooks) {
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<llama::LlamaModel> opened,
                            llama::open_eagle3(head, options, model, hooks));
  const Vocabulary& vocabulary = target->vocabulary();
  // Its first pair is the second token with the state of the first.
  const HeadOptions how{.name = kEagle3Kind.name, .window = 512, .reads_first = false};
  Draft parts{.drafter = std::make_unique<DraftModelDrafter>(
                  *opened, vocabulary.size(), ends_of(vocabulary), /*learns=*/true, how),
              .identity = times_key(opened->capabilities(), options),
              .notes = opened->notes()};
  return draft_of(std::move(target), std::move(opened), std::move(parts));
}

// A head that guesses a block at once.
Result<std::unique_ptr<Draft>> load_dflash(const llama::HeadFile& head, const ModelOptions& options,
                                           const llama::LlamaModel& model,
                                           std::shared_ptr<const Target> target,
                                           const LoadHooks& hooks) {
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<llama::LlamaBlockModel> opened,
                            llama::open_dflash(head, options, model, hooks));
  const Vocabulary& vocabulary = target->vocabulary();
  Capabilities passes;
  passes.n_batch = opened->capabilities().n_batch;
  passes.max_width = opened->capabilities().most_guesses + 1;
  Draft parts{
      .drafter = std::make_unique<BlockDrafter>(*opened, vocabulary.size(), ends_of(vocabulary)),
      .identity = times_key(passes, options)};
  return draft_of(std::move(target), std::move(opened), std::move(parts));
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
