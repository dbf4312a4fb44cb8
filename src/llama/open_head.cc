#include "llama/open_head.h"

#include <algorithm>
#include <utility>

#include "llama/draft_file.h"
#include "llama/files/gguf_header.h"
#include "llama/prediction.h"

namespace outrider::llama {
namespace {

HeadTarget target_of(const LlamaModel& target) {
  const ModelFacts& facts = target.file()->facts();
  return {.path = facts.path,
          .architecture = facts.architecture,
          .n_layer = facts.n_layer,
          .n_embd = facts.n_embd,
          .n_vocab = facts.n_vocab};
}

}  // namespace

HiddenStates states_for_head(const ModelOptions& options) {
  if (options.head.empty() || options.isolate || !options.workers.empty()) return {};
  const Result<HeadFile> head = read_head_file(options.head);
  if (!head.ok() || head->kind == HeadKind::kNone) return {};
  const Result<GgufHeader> header = read_gguf_header(options.path);
  if (!header.ok()) return {};
  const HeadTarget target{.path = options.path,
                          .architecture = header->architecture,
                          .n_layer = header->n_layer - header->n_prediction,
                          .n_embd = header->n_embd,
                          .n_vocab = header->n_vocab};
  return check_head(*head, target).ok() ? head->states() : HiddenStates();
}

Status check_beside(const HeadFile& head, const LlamaModel& target) {
  OUTRIDER_RETURN_IF_ERROR(check_head(head, target_of(target)));
  const std::string& path = target.file()->facts().path;
  const std::string& why = target.capabilities().hidden_reason;
  if (!why.empty()) {
    return unsupported("the head '" + head.path + "' cannot guess for '" + path + "': " + why);
  }
  if (target.settings().hidden == head.states()) return Status();
  return unsupported("the head '" + head.path + "' reads hidden states (" + head.states().text() +
                     ") that '" + path +
                     "' was opened without; load the target again, and the head behind it: the "
                     "target is then opened for this head");
}

Result<std::unique_ptr<LlamaModel>> open_eagle3(const HeadFile& head, const ModelOptions& options,
                                                const LlamaModel& target, const LoadHooks& hooks) {
  OUTRIDER_RETURN_IF_ERROR(check_beside(head, target));
  OUTRIDER_ASSIGN_OR_RETURN(DraftFile draft,
                            load_draft_file(options, &target.file()->facts(), hooks));
  draft.context.type_k = draft.context.type_v = "f16";
  draft.context.head_of = target.handle();
  return LlamaModel::create(std::move(draft.file), draft.options, draft.context);
}

Result<std::unique_ptr<LlamaBlockModel>> open_dflash(const HeadFile& head,
                                                     const ModelOptions& options,
                                                     const LlamaModel& target,
                                                     const LoadHooks& hooks) {
  OUTRIDER_RETURN_IF_ERROR(check_beside(head, target));
  OUTRIDER_ASSIGN_OR_RETURN(DraftFile draft,
                            load_draft_file(options, &target.file()->facts(), hooks));
  BlockShape block = head.block;
  block.n_tokens = std::min(block.n_tokens, kMaxStepWidth);
  return LlamaBlockModel::create(std::move(draft.file), target, draft.options, block);
}

}  // namespace outrider::llama
