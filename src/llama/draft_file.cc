#include "llama/draft_file.h"

#include <utility>

#include "llama/exactness/exactness_rule.h"
#include "llama/prediction.h"

namespace outrider::llama {

Result<DraftFile> load_draft_file(const ModelOptions& options, bool is_head,
                                  const LoadHooks& hooks) {
  DraftFile draft{.file = nullptr, .options = options, .context = {}};
  draft.options.exact = ExactMode::kOff;
  OUTRIDER_ASSIGN_OR_RETURN(const RuleFacts facts, read_rule_facts(options));
  LoadPlan plan = settings_rule(facts, draft.options);
  plan.context.max_width = kMaxStepWidth;
  draft.context = std::move(plan.context);
  draft.context.cores = threads::Cores::kLeft;  // its bits are nobody's text
  FileOptions how = file_options(options, plan.extra_bufts);
  how.head = is_head;
  OUTRIDER_ASSIGN_OR_RETURN(draft.file, ModelFile::load(options.path, how, hooks));
  return draft;
}

}  // namespace outrider::llama
