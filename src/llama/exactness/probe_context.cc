#include "llama/exactness/probe_context.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <string>
#include <utility>

#include "llama/base/backend.h"
#include "llama/base/handles.h"
#include "llama/kernels/compute_threads.h"
#include "llama/model/context_params.h"
#include "llama/model/token_batch.h"

namespace outrider::llama {
namespace {

constexpr std::int32_t kMaxSequences = 3;
constexpr std::int32_t kMaxBatch = 512;
constexpr llama_seq_id kCopyId = kMaxSequences;  // copies are read back under this id
constexpr std::int32_t kMaxLeaves = 4;

}  // namespace

struct ProbeContext::Handles {
  ContextHandle context;
  llama_memory_t memory = nullptr;
  TokenBatch batch;
};

ProbeContext::ProbeContext() = default;
ProbeContext::~ProbeContext() = default;

Result<std::unique_ptr<ProbeContext>> ProbeContext::create(std::shared_ptr<ModelFile> file,
                                                           const ModelOptions& options,
                                                           const ContextSettings& settings,
                                                           std::int32_t n_cells,
                                                           std::int32_t widest) {
  ensure_backend();
  std::string why;
  if (!file->supports_cache_type(settings.type_k, /*for_k=*/true, &why) ||
      !file->supports_cache_type(settings.type_v, /*for_k=*/false, &why)) {
    return invalid_argument(why);
  }
  std::unique_ptr<ProbeContext> probe(new ProbeContext());
  Capabilities& capabilities = probe->capabilities_;
  capabilities.n_vocab = file->facts().n_vocab;
  capabilities.n_sequences = std::clamp(options.n_sequences, 1, kMaxSequences);
  capabilities.n_batch =
      std::max({std::min(options.n_batch, kMaxBatch), widest + kMaxSequences, 8});
  capabilities.max_width = widest;
  capabilities.max_leaves = kMaxLeaves;
  if (file->facts().recurrent || file->facts().hybrid) {
    capabilities.rollback = Rollback::kNone;
    capabilities.max_leaves = 1;
  }
  const ContextSizes sizes{
      .n_ctx = n_cells,
      .n_sequences = kMaxSequences + 1,
      .n_cells = n_cells,
      .n_batch = capabilities.n_batch,
      .max_width = widest,
      .n_outputs = std::max(widest, 8),
      .n_threads = options.n_threads > 0 ? options.n_threads : physical_cores()};
  llama_context_params params = make_params(sizes, settings);
  params.abort_callback = [](void* self) {
    return static_cast<const ProbeContext*>(self)->interrupted();
  };
  params.abort_callback_data = probe.get();

  const LogCapture log(file->log());
  probe->handles_ = std::make_unique<Handles>();
  Handles& handles = *probe->handles_;
  try {
    handles.context.reset(llama_init_from_model(file->handle(), params));
  } catch (const std::exception& error) {
    return internal_error(std::string("llama.cpp cannot make a context: ") + error.what());
  }
  if (!handles.context) return internal_error("llama.cpp cannot make a context" + log.because());
  OUTRIDER_RETURN_IF_ERROR(file->adapters().apply(handles.context.get()));
  handles.memory = llama_get_memory(handles.context.get());
  capabilities.n_ctx = static_cast<std::int32_t>(llama_n_ctx(handles.context.get()));
  probe->lengths_.assign(static_cast<std::size_t>(capabilities.n_sequences), 0);
  for (SeqId seq = 0; seq < capabilities.n_sequences; ++seq) {
    const std::int32_t n_extra = capabilities.max_leaves - 1;
    probe->trials_.emplace_back(seq, kCopyId + 1 + seq * n_extra, n_extra);
  }
  probe->file_ = std::move(file);
  return probe;
}

bool ProbeContext::interrupted() const {
  return interrupt_ != nullptr && interrupt_->load(std::memory_order_relaxed);
}

std::int32_t ProbeContext::room(SeqId /*seq*/) const {
  std::int32_t used = copied_;
  for (const Pos length : lengths_) used += length;
  return std::max(0, capabilities_.n_ctx - used);
}

Status ProbeContext::evaluate(std::span<const EvalItem> items) {
  Handles& handles = *handles_;
  std::int32_t n_tokens = 0;
  for (const EvalItem& item : items) {
    if (item.first_new > 0) return unsupported("the probe's trees do not grow");
    n_tokens += static_cast<std::int32_t>(item.prefix.size());
    if (item.tree != nullptr) n_tokens += item.tree->size();
  }
  if (n_tokens > capabilities_.n_batch || n_tokens > room(0)) {
    return resource_exhausted("the probe's context has no room for " + std::to_string(n_tokens) +
                              " more tokens");
  }
  handles.batch.clear();
  pending_.clear();
  for (const EvalItem& item : items) add_to_batch(item);
  const LogCapture log(file_->log());
  std::int32_t code = 0;
  std::string why;
  const ComputeThreads own_threads(file_->teams());
  try {
    code = llama_decode(handles.context.get(), handles.batch.view());
    llama_synchronize(handles.context.get());
  } catch (const std::exception& error) {
    code = -1;
    why = std::string(": ") + error.what();
  }
  if (code == 0) return Status();
  for (const Pending& item : pending_) {
    std::vector<TreeIds::Removal> removed;
    trials_[static_cast<std::size_t>(item.seq)].undo(0, &removed);
    take(removed);
    drop_leaf_ids(item.seq);
  }
  pending_.clear();
  if (code == 2 && interrupted()) return cancelled("the evaluation was interrupted");
  if (why.empty()) why = log.because();
  return internal_error("llama.cpp failed to evaluate a batch of " + std::to_string(n_tokens) +
                        " tokens (code " + std::to_string(code) + ")" + why);
}

std::span<const float> ProbeContext::logits(std::size_t item, NodeId node) const {
  const float* row =
      llama_get_logits_ith(handles_->context.get(), pending_[item].first_output + node);
  assert(row != nullptr);
  return {row, static_cast<std::size_t>(capabilities_.n_vocab)};
}

void ProbeContext::add_to_batch(const EvalItem& item) {
  Handles& handles = *handles_;
  TreeIds& trial = trials_[static_cast<std::size_t>(item.seq)];
  trial.begin(length(item.seq), static_cast<std::int32_t>(item.prefix.size()));
  std::vector<TreeIds::Copy> copies;
  if (item.tree != nullptr) trial.grow(*item.tree, &copies);
  for (const TreeIds::Copy& copy : copies) {
    llama_memory_seq_cp(handles.memory, copy.from, copy.to, copy.begin, copy.end);
  }
  handles.batch.add(item, trial, length(item.seq));
  pending_.push_back({.seq = item.seq, .first_output = handles.batch.n_tokens() - trial.n_nodes()});
}

bool ProbeContext::take(const std::vector<TreeIds::Removal>& removed) {
  bool done = true;
  for (const TreeIds::Removal& r : removed) {
    done = llama_memory_seq_rm(handles_->memory, r.id, r.from, -1) && done;
  }
  return done;
}

// Ids of leaves hold nothing between evaluations: a deepened sequence has more cells than they
// know.
void ProbeContext::drop_leaf_ids(SeqId seq) {
  TreeIds& trial = trials_[static_cast<std::size_t>(seq)];
  for (std::int32_t i = 1; i <= trial.n_extra(); ++i) {
    llama_memory_seq_rm(handles_->memory, trial.id(i), -1, -1);
  }
  trial.detach();
}

Status ProbeContext::commit(SeqId seq, std::span<const NodeId> path) {
  TreeIds& trial = trials_[static_cast<std::size_t>(seq)];
  assert(trial.open());
  const Pos kept = trial.base() + static_cast<Pos>(path.size());
  const std::vector<std::int32_t> cells(static_cast<std::size_t>(trial.n_tokens()), 0);
  const TreeIds::Settlement end = trial.settle(/*kept=*/true, path, cells, /*park_below=*/-1);
  const bool taken = take(end.removed);
  for (const TreeIds::Copy& copy : end.copied) {
    llama_memory_seq_cp(handles_->memory, copy.from, copy.to, copy.begin, copy.end);
  }
  drop_leaf_ids(seq);
  if (!taken) return internal_error("llama.cpp cannot take back tokens of this model");
  lengths_[static_cast<std::size_t>(seq)] = kept;
  return Status();
}

Status ProbeContext::truncate(SeqId seq, Pos length) {
  if (trials_[static_cast<std::size_t>(seq)].open()) {  // forgotten, with the rest
    OUTRIDER_RETURN_IF_ERROR(commit(seq, {}));
  }
  if (!llama_memory_seq_rm(handles_->memory, seq, length, -1)) {
    return internal_error("llama.cpp cannot take back tokens of this model");
  }
  lengths_[static_cast<std::size_t>(seq)] = length;
  if (seq == 0 && length < copied_from_) {
    // A part of the copies would stay: nobody needs that.
    if (length > 0) return internal_error("a deepened sequence can only be emptied");
    copied_ = copied_from_ = 0;
  }
  return Status();
}

Status ProbeContext::deepen(std::int32_t cells) {
  const Pos n_text = length(0);
  assert(n_text > 0);
  llama_context* context = handles_->context.get();
  const LogCapture log(file_->log());
  std::vector<std::uint8_t> state;
  if (copied_ == 0) {
    state.resize(llama_state_seq_get_size(context, 0));
    if (llama_state_seq_get_data(context, state.data(), state.size(), 0) != state.size()) {
      return unsupported("llama.cpp cannot save this model's state" + log.because());
    }
    copied_from_ = n_text;
  }
  while (n_text + copied_ < cells) {
    if (state.empty()) return unsupported("the cache was deepened before");
    OUTRIDER_RETURN_IF_ERROR(copy_cells(state, std::min(n_text, cells - n_text - copied_)));
  }
  return Status();
}

// `n` more cells of sequence 0: the first `n` of what `state` holds, under an id of their own
// first.
Status ProbeContext::copy_cells(std::span<const std::uint8_t> state, std::int32_t n) {
  llama_context* context = handles_->context.get();
  const bool read =
      llama_state_seq_set_data(context, state.data(), state.size(), kCopyId) == state.size();
  const bool cut = read && llama_memory_seq_rm(handles_->memory, kCopyId, n, -1);
  if (cut) llama_memory_seq_cp(handles_->memory, kCopyId, 0, 0, -1);
  llama_memory_seq_rm(handles_->memory, kCopyId, -1, -1);
  if (!cut) return unsupported("llama.cpp cannot copy this model's state");
  copied_ += n;
  return Status();
}

}  // namespace outrider::llama
