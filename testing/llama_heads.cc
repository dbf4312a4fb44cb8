#include "testing/llama_heads.h"

#include <algorithm>
#include <cassert>
#include <exception>

#include "common.h"
#include "llama-cpp.h"
#include "log.h"
#include "speculative.h"
#include "testing/tiny_runner.h"

namespace outrider::testing {
namespace {

common_speculative_type type_of(LlamaHeadKind kind) {
  switch (kind) {
    case LlamaHeadKind::kMtp:
      return COMMON_SPECULATIVE_TYPE_DRAFT_MTP;
    case LlamaHeadKind::kEagle3:
      return COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3;
    case LlamaHeadKind::kDflash:
      return COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH;
  }
  return COMMON_SPECULATIVE_TYPE_NONE;
}

}  // namespace

// In the order in which they may be destroyed, the last first.
struct LlamaHeads::State {
  LlamaHeadsOptions options;
  llama_model_ptr target_model;
  llama_model_ptr head_model;
  llama_context_ptr target;
  llama_context_ptr head;
  common_params_speculative params;
  common_speculative_ptr speculative;
  std::vector<Token> evaluated;  // by the target

  Status load_models();
  Status make_contexts();
  Status restart();
  Status evaluate(const std::vector<Token>& tokens);
  Result<std::vector<Token>> draft(Token last);
  Status remove_from(llama_context* context, std::size_t position);
  int n_vocab() const { return llama_vocab_n_tokens(llama_model_get_vocab(target_model.get())); }
  Token best(int row) const { return argmax(llama_get_logits_ith(target.get(), row), n_vocab()); }
};

Status LlamaHeads::State::load_models() {
  const bool mtp = options.kind == LlamaHeadKind::kMtp;
  OUTRIDER_ASSIGN_OR_RETURN(target_model, load_model(options.target_path, mtp));
  if (mtp) return Status();
  OUTRIDER_ASSIGN_OR_RETURN(head_model, load_model(options.head_path));
  return Status();
}

Status LlamaHeads::State::make_contexts() {
  llama_context_params target_params =
      context_params(options.n_ctx, options.n_threads, options.kv_type);
  target_params.n_rs_seq = static_cast<std::uint32_t>(options.n_draft);
  target.reset(llama_init_from_model(target_model.get(), target_params));
  if (target == nullptr) {
    return internal_error("llama.cpp cannot make a context for '" + options.target_path + "'");
  }
  llama_context_params head_params =
      context_params(options.n_ctx, options.n_threads, GGML_TYPE_F16);
  head_params.ctx_other = target.get();
  const bool mtp = options.kind == LlamaHeadKind::kMtp;
  if (mtp) head_params.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
  head.reset(llama_init_from_model(mtp ? target_model.get() : head_model.get(), head_params));
  if (head == nullptr) {
    return internal_error("llama.cpp cannot make a head's context for '" +
                          (mtp ? options.target_path : options.head_path) + "'");
  }
  return Status();
}

Status LlamaHeads::State::restart() {
  llama_memory_clear(llama_get_memory(target.get()), true);
  llama_memory_clear(llama_get_memory(head.get()), true);
  evaluated.clear();
  params.types = {type_of(options.kind)};
  params.draft.n_max = options.n_draft;
  params.draft.n_min = 0;
  params.draft.p_min = 0.0F;
  params.draft.backend_sampling = false;
  params.draft.ctx_tgt = target.get();
  params.draft.ctx_dft = head.get();
  try {
    speculative.reset(common_speculative_init(params, 1));
  } catch (const std::exception& error) {
    return unsupported(std::string("llama.cpp refuses the head: ") + error.what());
  }
  if (speculative == nullptr) return unsupported("llama.cpp has no use for the head");
  return Status();
}

// Evaluates `tokens` behind what is evaluated, in one batch, with all rows, for target and head.
Status LlamaHeads::State::evaluate(const std::vector<Token>& tokens) {
  llama_batch batch = llama_batch_init(static_cast<std::int32_t>(tokens.size()), 0, 1);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    common_batch_add(batch, tokens[i], static_cast<llama_pos>(evaluated.size() + i), {0}, true);
  }
  const int code = llama_decode(target.get(), batch);
  const bool ok = code == 0 && common_speculative_process(speculative.get(), batch);
  llama_batch_free(batch);
  if (!ok) {
    return internal_error("llama.cpp failed to evaluate " + std::to_string(tokens.size()) +
                          " tokens with a head (code " + std::to_string(code) + ")");
  }
  evaluated.insert(evaluated.end(), tokens.begin(), tokens.end());
  return Status();
}

Status LlamaHeads::State::remove_from(llama_context* context, std::size_t position) {
  if (llama_memory_seq_rm(llama_get_memory(context), 0, static_cast<llama_pos>(position), -1)) {
    return Status();
  }
  return internal_error("llama.cpp cannot take back tokens from " + std::to_string(position));
}

// `last` is behind what is evaluated. The head's cells are as before, but for what it completes of
// the last position.
Result<std::vector<Token>> LlamaHeads::State::draft(Token last) {
  llama_tokens result;
  const llama_tokens prompt(evaluated.begin(), evaluated.end());
  common_speculative_draft_params& draft =
      common_speculative_get_draft_params(speculative.get(), 0);
  draft.drafting = true;
  draft.n_max = options.n_draft;
  draft.pos0 = static_cast<llama_pos>(evaluated.size());
  draft.id_last = last;
  draft.prompt = &prompt;
  draft.result = &result;
  common_speculative_draft(speculative.get());
  OUTRIDER_RETURN_IF_ERROR(remove_from(head.get(), evaluated.size()));
  return std::vector<Token>(result.begin(), result.end());
}

LlamaHeads::LlamaHeads(std::unique_ptr<State> state) : state_(std::move(state)) {}
LlamaHeads::LlamaHeads(LlamaHeads&&) noexcept = default;
LlamaHeads::~LlamaHeads() = default;

const llama_model* LlamaHeads::target() const { return state_->target_model.get(); }

Result<LlamaHeads> LlamaHeads::load(const LlamaHeadsOptions& options) {
  silence_llama_log();
  common_log_set_verbosity_thold(-1);  // llama-common's own log
  std::unique_ptr<State> state = std::make_unique<State>();
  state->options = options;
  OUTRIDER_RETURN_IF_ERROR(state->load_models());
  OUTRIDER_RETURN_IF_ERROR(state->make_contexts());
  OUTRIDER_RETURN_IF_ERROR(state->restart());
  return LlamaHeads(std::move(state));
}

Result<std::vector<std::vector<Token>>> LlamaHeads::guesses(
    const std::vector<Token>& text, int first, std::vector<std::vector<float>>* logits) {
  assert(first >= 1 && first < static_cast<int>(text.size()));
  OUTRIDER_RETURN_IF_ERROR(state_->restart());
  const std::size_t batch = state_->options.n_prompt_batch > 0
                                ? static_cast<std::size_t>(state_->options.n_prompt_batch)
                                : text.size();
  const std::size_t n_prompt = static_cast<std::size_t>(first);
  for (std::size_t i = 0; i < n_prompt; i += batch) {
    const std::size_t end = std::min(n_prompt, i + batch);
    OUTRIDER_RETURN_IF_ERROR(state_->evaluate({text.begin() + static_cast<std::ptrdiff_t>(i),
                                               text.begin() + static_cast<std::ptrdiff_t>(end)}));
  }
  std::vector<std::vector<Token>> result;
  for (std::size_t i = n_prompt; i < text.size(); ++i) {
    Result<std::vector<Token>> drafted = state_->draft(text[i]);
    if (!drafted.ok()) return drafted.status();
    result.push_back(std::move(*drafted));
    if (logits != nullptr) {
      const float* row = llama_get_logits_ith(state_->head.get(), -1);
      if (row == nullptr) return internal_error("llama.cpp's head has no logits");
      logits->emplace_back(row, row + state_->n_vocab());
    }
    OUTRIDER_RETURN_IF_ERROR(state_->evaluate({text[i]}));
    common_speculative_accept(state_->speculative.get(), 0, 0);
  }
  return result;
}

Result<LlamaHeadsRun> LlamaHeads::run(const std::vector<Token>& prompt, int n_tokens) {
  assert(prompt.size() >= 2);
  OUTRIDER_RETURN_IF_ERROR(state_->restart());
  OUTRIDER_RETURN_IF_ERROR(state_->evaluate(prompt));
  LlamaHeadsRun run;
  run.text.push_back(state_->best(static_cast<int>(prompt.size()) - 1));
  while (static_cast<int>(run.text.size()) < n_tokens) {
    Result<std::vector<Token>> drafted = state_->draft(run.text.back());
    if (!drafted.ok()) return drafted.status();
    std::vector<Token> batch = {run.text.back()};
    batch.insert(batch.end(), drafted->begin(), drafted->end());
    OUTRIDER_RETURN_IF_ERROR(state_->evaluate(batch));
    LlamaHeadsStep step;
    step.guesses = *drafted;
    run.text.push_back(state_->best(0));
    while (step.n_accepted < static_cast<int>(drafted->size()) &&
           (*drafted)[static_cast<std::size_t>(step.n_accepted)] == run.text.back()) {
      ++step.n_accepted;
      run.text.push_back(state_->best(step.n_accepted));
    }
    common_speculative_accept(state_->speculative.get(), 0,
                              static_cast<std::uint16_t>(step.n_accepted));
    const std::size_t kept =
        state_->evaluated.size() - drafted->size() + static_cast<std::size_t>(step.n_accepted);
    state_->evaluated.resize(kept);
    OUTRIDER_RETURN_IF_ERROR(state_->remove_from(state_->target.get(), kept));
    OUTRIDER_RETURN_IF_ERROR(state_->remove_from(state_->head.get(), kept));
    run.steps.push_back(std::move(step));
  }
  return run;
}

}  // namespace outrider::testing
