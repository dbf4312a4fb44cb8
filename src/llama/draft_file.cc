#include "llama/draft_file.h"

#include <utility>

#include "llama/exactness/exactness_rule.h"
#include "llama/prediction.h"

namespace outrider::llama {

FileOptions draft_file_options(const ModelOptions& options, bool extra_bufts,
                               const ModelFacts* target) {
  FileOptions how = file_options(options, extra_bufts);
  how.head = target != nullptr;
  how.target_on_gpus = target != nullptr && !target->all_on_cpu;
  return how;
}

Result<DraftFile> load_draft_file(const ModelOptions& options, const ModelFacts* target,
                                  const LoadHooks& hooks) {
  DraftFile draft{.file = nullptr, .options = options, .context = {}};
  draft.options.exact = ExactMode::kOff;
  OUTRIDER_ASSIGN_OR_RETURN(const RuleFacts facts, read_rule_facts(options));
  LoadPlan plan = settings_rule(facts, draft.options);
  plan.context.max_width = kMaxStepWidth;
  draft.context = std::move(plan.context);
  draft.context.cores = threads::Cores::kLeft;  // its bits are nobody's text
  const FileOptions how = draft_file_options(options, plan.extra_bufts, target);
  OUTRIDER_ASSIGN_OR_RETURN(draft.file, ModelFile::load(options.path, how, hooks));
  return draft;
}

}  // namespace outrider::llama
