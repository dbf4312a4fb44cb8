#include "llama/model/llama_block_model.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <string>

#include "base/caught.h"
#include "llama.h"
#include "llama/base/backend.h"
#include "llama/heads/hidden_states.h"
#include "llama/kernels/compute_threads.h"
#include "llama/model/context_params.h"

namespace outrider::llama {

Result<std::unique_ptr<LlamaBlockModel>> LlamaBlockModel::create(std::shared_ptr<ModelFile> file,
                                                                 const LlamaModel& target,
                                                                 const ModelOptions& options,
                                                                 const BlockShape& block) {
  ensure_backend();
  std::unique_ptr<LlamaBlockModel> model(new LlamaBlockModel());
  model->file_ = std::move(file);
  model->block_ = block;
  model->decode_log_ = [self = model.get()](LogLevel level, std::string_view line) {
    if (!self->interrupted() && self->file_->log()) self->file_->log()(level, line);
  };
  OUTRIDER_RETURN_IF_ERROR(
      model->make_context(target, options).with_context("'" + model->file_->facts().path + "'"));
  return model;
}

Status LlamaBlockModel::make_context(const LlamaModel& target, const ModelOptions& options) {
  const Capabilities& of_target = target.capabilities();
  ContextSettings settings = target.settings();
  settings.hidden = {};
  settings.head_of = target.handle();
  settings.type_k = settings.type_v = "f16";
  settings.rope_freq_base = options.rope_freq_base;
  settings.rope_freq_scale = options.rope_freq_scale;
  settings.max_width = block_.n_tokens;
  settings.n_cells = 0;
  ModelOptions own = options;
  own.n_sequences = of_target.n_sequences;
  own.n_ctx = of_target.n_ctx + settings.max_width;
  own.n_batch = kMostHiddenBatch;
  Result<ContextSizes> sizes = plan_sizes(own, settings, SizedModel());
  if (!sizes.ok()) return sizes.status();
  cache_bytes_ = static_cast<std::uint64_t>(sizes->n_cells) *
                 file_->facts().kv_bytes_per_token(settings.type_k, settings.type_v);
  llama_context_params params = make_params(*sizes, settings);
  params.abort_callback = [](void* self) {
    return static_cast<const LlamaBlockModel*>(self)->interrupted();
  };
  params.abort_callback_data = this;

  const LogCapture log(file_->log());
  OUTRIDER_ASSIGN_OR_RETURN(context_, make_llama_context(*file_, params, sizes->n_cells));
  llama_set_causal_attn(context_.get(), block_.causal);
  OUTRIDER_RETURN_IF_ERROR(file_->adapters().apply(context_.get()));
  memory_ = llama_get_memory(context_.get());
  many_positions_ = llama_model_rope_type(file_->handle()) == LLAMA_ROPE_TYPE_MROPE;
  capabilities_ = {.n_vocab = file_->facts().n_vocab,
                   .n_ctx = sizes->n_ctx,
                   .n_batch = static_cast<std::int32_t>(llama_n_batch(context_.get())),
                   .n_sequences = sizes->n_sequences,
                   .n_states = of_target.n_hidden,
                   .most_guesses = sizes->max_width - 1,
                   .can_share = true};
  lengths_.assign(static_cast<std::size_t>(sizes->n_sequences), 0);
  return Status();
}

bool LlamaBlockModel::interrupted() const {
  return interrupt_ != nullptr && interrupt_->load(std::memory_order_relaxed);
}

void LlamaBlockModel::begin_batch() {
  batch_.tokens.clear();
  batch_.states.clear();
  batch_.positions.clear();
  batch_.ids.clear();
  batch_.outputs.clear();
  first_rows_.clear();
  rows_ = nullptr;
}

void LlamaBlockModel::add(SeqId seq, Pos position, bool output) {
  batch_.positions.push_back(position);
  batch_.ids.push_back(seq);
  batch_.outputs.push_back(output ? 1 : 0);
}

// The meaning of llama_decode's codes is llama.h's.
Status LlamaBlockModel::decode() {
  const std::size_t n = batch_.ids.size();
  if (n > static_cast<std::size_t>(capabilities_.n_batch)) {
    return invalid_argument("the pass holds " + std::to_string(n) +
                            " tokens; the head takes at most " +
                            std::to_string(capabilities_.n_batch) + " at once");
  }
  if (interrupted()) return cancelled("the evaluation was interrupted");
  if (many_positions_ && !batch_.states.empty()) {
    // Of a text's token all are the same but for the last, which is unused. Tokens get theirs from
    // llama.cpp.
    for (std::size_t i = 0; i < 2 * n; ++i) batch_.positions.push_back(batch_.positions[i % n]);
    batch_.positions.resize(4 * n, 0);
  }
  batch_.n_ids.assign(n, 1);
  batch_.id_lists.clear();
  for (llama_seq_id& id : batch_.ids) batch_.id_lists.push_back(&id);
  const llama_batch view = {.n_tokens = static_cast<std::int32_t>(n),
                            .token = batch_.tokens.empty() ? nullptr : batch_.tokens.data(),
                            .embd = batch_.states.empty() ? nullptr : batch_.states.data(),
                            .pos = batch_.positions.data(),
                            .n_seq_id = batch_.n_ids.data(),
                            .seq_id = batch_.id_lists.data(),
                            .logits = batch_.outputs.data()};
  const LogCapture log(decode_log_);
  const ComputeThreads own_threads(file_->teams(), threads::Cores::kLeft);
  std::int32_t code = 0;
  try {
    code = llama_decode(context_.get(), view);
    if (code == 0) llama_synchronize(context_.get());
  } catch (const std::exception& error) {
    return caught(error).with_context("llama.cpp failed to run the head");
  }
  if (code == 0) return Status();
  if (code == 1) {
    return resource_exhausted("llama.cpp found no cells for " + std::to_string(n) +
                              " tokens of the head");
  }
  if (code == 2) return cancelled("the evaluation was interrupted");
  return internal_error("llama.cpp failed to run the head on " + std::to_string(n) +
                        " tokens (code " + std::to_string(code) + ")" + log.because());
}

bool LlamaBlockModel::drop_from(SeqId seq, Pos length) {
  return llama_memory_seq_rm(memory_, seq, length, -1);
}

Status LlamaBlockModel::read(std::span<const BlockText> items) {
  const std::size_t width = static_cast<std::size_t>(capabilities_.n_states);
  begin_batch();
  for (const BlockText& item : items) {
    assert(item.states.size() % width == 0);
    const Pos n = static_cast<Pos>(item.states.size() / width);
    if (n > capabilities_.n_ctx - length(item.seq)) {
      return resource_exhausted("the head's context holds " + std::to_string(capabilities_.n_ctx) +
                                " tokens");
    }
    batch_.states.insert(batch_.states.end(), item.states.begin(), item.states.end());
    for (Pos i = 0; i < n; ++i) add(item.seq, length(item.seq) + i, /*output=*/false);
  }
  const Status status = decode();
  for (const BlockText& item : items) {
    Pos& length = lengths_[static_cast<std::size_t>(item.seq)];
    if (status.ok()) {
      length += static_cast<Pos>(item.states.size() / width);
    } else {
      (void)drop_from(item.seq, length);
    }
  }
  return status;
}

Status LlamaBlockModel::guess(std::span<const BlockRoot> items) {
  begin_batch();
  for (const BlockRoot& item : items) {
    if (item.root < 0 || item.root >= capabilities_.n_vocab) {
      return invalid_argument("token " + std::to_string(item.root) +
                              " is not in the vocabulary of " +
                              std::to_string(capabilities_.n_vocab) + " tokens");
    }
    if (item.n_guesses < 1 || item.n_guesses > capabilities_.most_guesses) {
      return invalid_argument("a block of this head has 1 to " +
                              std::to_string(capabilities_.most_guesses) + " guesses, not " +
                              std::to_string(item.n_guesses));
    }
    if (item.n_guesses >= capabilities_.n_ctx - length(item.seq)) {
      return resource_exhausted("the head's context holds " + std::to_string(capabilities_.n_ctx) +
                                " tokens");
    }
    first_rows_.push_back(batch_.tokens.size());
    for (std::int32_t i = 0; i <= item.n_guesses; ++i) {
      batch_.tokens.push_back(i == 0 ? item.root : block_.mask);
      // The root's row as well: llama.cpp would not leave one out.
      add(item.seq, length(item.seq) + i, /*output=*/true);
    }
  }
  Status status = decode();
  for (const BlockRoot& item : items) {
    if (drop_from(item.seq, length(item.seq))) continue;
    status = internal_error("llama.cpp cannot take back a block");
  }
  if (status.ok()) rows_ = llama_get_logits(context_.get());
  if (status.ok() && rows_ == nullptr) status = internal_error("llama.cpp gave no logits");
  return status;
}

std::span<const float> LlamaBlockModel::logits(std::size_t item, std::int32_t depth) const {
  assert(rows_ != nullptr && item < first_rows_.size() && depth >= 1);
  const std::size_t n_vocab = static_cast<std::size_t>(capabilities_.n_vocab);
  const std::size_t row = first_rows_[item] + static_cast<std::size_t>(depth);
  return {rows_ + row * n_vocab, n_vocab};
}

Status LlamaBlockModel::truncate(SeqId seq, Pos length) {
  assert(length >= 0 && length <= this->length(seq));
  if (!drop_from(seq, length)) return internal_error("llama.cpp cannot forget tokens of the head");
  lengths_[static_cast<std::size_t>(seq)] = length;
  return Status();
}

Status LlamaBlockModel::share(SeqId from, SeqId to, Pos length) {
  assert(from != to && length >= 0 && length <= this->length(from));
  OUTRIDER_RETURN_IF_ERROR(truncate(to, 0));
  llama_memory_seq_cp(memory_, from, to, 0, length);
  lengths_[static_cast<std::size_t>(to)] = length;
  return Status();
}

std::string LlamaBlockModel::check_integrity() const {
  for (SeqId seq = 0; seq < capabilities_.n_sequences; ++seq) {
    const llama_pos last = llama_memory_seq_pos_max(memory_, seq);
    if (last == length(seq) - 1) continue;
    return "sequence " + std::to_string(seq) + ": llama.cpp's last position is " +
           std::to_string(last) + ", not " + std::to_string(length(seq) - 1);
  }
  return "";
}

}  // namespace outrider::llama
