#include "backend/head_draft.h"

#include <utility>
#include <vector>

#include "backend/target_costs.h"
#include "draft/base/drafter_plan.h"
#include "draft/model/draft_model.h"
#include "llama/open_head.h"

namespace outrider {
namespace {

// A head that guesses token after token, each from its own state after the guess before.
class ChainHead : public Draft {
 public:
  ChainHead(std::shared_ptr<const Target> target, const llama::LlamaVocabulary& vocabulary,
            std::unique_ptr<llama::LlamaModel> model, const HeadOptions& head, std::string identity)
      : target_(std::move(target)),
        identity_(std::move(identity)),
        model_(std::move(model)),
        info_(info_of(model_->file()->facts())),
        drafter_(
            *model_, vocabulary.size(),
            [&vocabulary](Token token) { return vocabulary.is_end_of_generation(token); },
            /*learns=*/true, head) {}

  Drafter& drafter() override { return drafter_; }
  std::string identity() const override { return identity_; }
  const ModelInfo& info() const override { return info_; }
  const std::vector<std::string>& notes() const override { return model_->notes(); }

 private:
  std::shared_ptr<const Target> target_;  // its vocabulary, and its context, which the model reads
  std::string identity_;
  std::unique_ptr<llama::LlamaModel> model_;
  ModelInfo info_;
  DraftModelDrafter drafter_;
};

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
    case llama::HeadKind::kEagle3: {
      Result<std::unique_ptr<llama::LlamaModel>> opened =
          llama::open_eagle3(head, options, *model, hooks);
      if (!opened.ok()) return opened.status();
      const Result<std::string> identity = times_key(**opened, options);
      // Its first pair is the second token with the state of the first.
      const HeadOptions how{.name = kEagle3Name, .window = 512, .reads_first = false};
      return std::unique_ptr<Draft>(
          std::make_unique<ChainHead>(std::move(target), loaded->vocabulary(), std::move(*opened),
                                      how, identity.ok() ? *identity : ""));
    }
    case llama::HeadKind::kNone:
      break;
  }
  return internal_error("'" + head.path + "' is no head");
}

}  // namespace outrider
