#include "llama/probe_context.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <string>
#include <utility>

#include "llama/backend.h"
#include "llama/context_params.h"
#include "llama/handles.h"

namespace outrider::llama {
namespace {

constexpr std::int32_t kMaxSequences = 3;
constexpr std::int32_t kMaxBatch = 512;
constexpr llama_seq_id kCopyId = kMaxSequences;  // copies are read back under this id

}  // namespace

struct ProbeContext::Handles {
  ContextHandle context;
  llama_memory_t memory = nullptr;
  std::vector<llama_token> tokens;  // [n_batch], as all below
  std::vector<llama_pos> positions;
  std::vector<llama_seq_id> ids;
  std::vector<llama_seq_id*> id_lists;
  std::vector<std::int32_t> n_ids;
  std::vector<std::int8_t> outputs;
  std::int32_t n_tokens = 0;

  void add(Token token, Pos pos, SeqId seq, bool output) {
    const std::size_t i = static_cast<std::size_t>(n_tokens++);
    tokens[i] = token;
    positions[i] = pos;
    ids[i] = seq;
    id_lists[i] = &ids[i];
    n_ids[i] = 1;
    outputs[i] = output ? 1 : 0;
  }
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
  if (file->facts().recurrent || file->facts().hybrid) capabilities.rollback = Rollback::kNone;
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
  handles.memory = llama_get_memory(handles.context.get());
  capabilities.n_ctx = static_cast<std::int32_t>(llama_n_ctx(handles.context.get()));
  const std::size_t n_batch = static_cast<std::size_t>(capabilities.n_batch);
  handles.tokens.resize(n_batch);
  handles.positions.resize(n_batch);
  handles.ids.resize(n_batch);
  handles.id_lists.resize(n_batch);
  handles.n_ids.resize(n_batch);
  handles.outputs.resize(n_batch);
  probe->lengths_.assign(static_cast<std::size_t>(capabilities.n_sequences), 0);
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
  handles.n_tokens = 0;
  pending_.clear();
  for (const EvalItem& item : items) {
    Pos pos = length(item.seq);
    for (const Token token : item.prefix) handles.add(token, pos++, item.seq, /*output=*/false);
    pending_.push_back({.seq = item.seq,
                        .n_prefix = static_cast<std::int32_t>(item.prefix.size()),
                        .first_output = handles.n_tokens});
    const std::int32_t n_nodes = item.tree == nullptr ? 0 : item.tree->size();
    for (NodeId node = 0; node < n_nodes; ++node) {
      handles.add(item.tree->token(node), pos++, item.seq, /*output=*/true);
    }
  }
  const llama_batch batch{.n_tokens = handles.n_tokens,
                          .token = handles.tokens.data(),
                          .embd = nullptr,
                          .pos = handles.positions.data(),
                          .n_seq_id = handles.n_ids.data(),
                          .seq_id = handles.id_lists.data(),
                          .logits = handles.outputs.data()};
  const LogCapture log(file_->log());
  std::int32_t code = 0;
  std::string why;
  try {
    code = llama_decode(handles.context.get(), batch);
    llama_synchronize(handles.context.get());
  } catch (const std::exception& error) {
    code = -1;
    why = std::string(": ") + error.what();
  }
  if (code == 0) return Status();
  for (const Pending& item : pending_) {
    llama_memory_seq_rm(handles.memory, item.seq, length(item.seq), -1);
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

Status ProbeContext::commit(SeqId seq, std::span<const NodeId> path) {
  for (const Pending& pending : pending_) {
    if (pending.seq != seq) continue;
    return truncate(seq, length(seq) + pending.n_prefix + static_cast<std::int32_t>(path.size()));
  }
  return internal_error("the probe's sequence " + std::to_string(seq) + " has nothing on trial");
}

// Also forwards, over what the last evaluate() put in.
Status ProbeContext::truncate(SeqId seq, Pos length) {
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
