// LlamaModel's context: what it is made of, what it can do, and rebuilding its cache.
#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "base/numbers.h"
#include "llama/base/backend.h"
#include "llama/model/context.h"
#include "llama/model/context_params.h"
#include "llama/model/llama_model.h"
#include "llama/model/rollback_check.h"

namespace outrider::llama {
namespace {

constexpr const char* kWindowsKeepAll =
    "; its layers with a sliding window keep all tokens, too, so that guesses can be taken back";

}  // namespace

Result<std::unique_ptr<LlamaModel>> LlamaModel::create(std::shared_ptr<ModelFile> file,
                                                       const ModelOptions& options,
                                                       const ContextSettings& settings) {
  ensure_backend();
  std::unique_ptr<LlamaModel> model(new LlamaModel());
  model->file_ = std::move(file);
  model->settings_ = settings;
  const std::string& path = model->file_->facts().path;
  model->decode_log_ = [self = model.get()](LogLevel level, std::string_view line) {
    if (!self->interrupted() && self->file_->log()) self->file_->log()(level, line);
  };
  OUTRIDER_RETURN_IF_ERROR(model->choose_cache_types());
  OUTRIDER_RETURN_IF_ERROR(model->choose_sizes(options).with_context("'" + path + "'"));
  if (settings.for_probe) return model;
  model->n_snapshots_ = static_cast<std::int32_t>(llama_n_rs_seq(model->handle()));
  RollbackCheck check(*model, model->capabilities_, model->n_snapshots_,
                      model->has_recurrent_part() || model->n_snapshots_ > 0,
                      model->file_->facts());
  OUTRIDER_RETURN_IF_ERROR(check.run().with_context("'" + path + "'"));
  return model;
}

Status check_value_cache(const ContextSettings& settings) {
  if (settings.flash_attention || !ggml_is_quantized(cache_type_of(settings.type_v))) {
    return Status();
  }
  return invalid_argument("a " + settings.type_v +
                          " cache for values needs flash attention; switch it on "
                          "(flash_attn=on) or take f16 (cache_type_v=f16)");
}

Status LlamaModel::choose_cache_types() {
  for (const bool for_k : {true, false}) {
    std::string& type = for_k ? settings_.type_k : settings_.type_v;
    std::string why;
    if (file_->supports_cache_type(type, for_k, &why)) continue;
    if (!is_cache_type(type)) return invalid_argument(why);
    notes_.push_back(why + "; f16 is used");
    type = "f16";
  }
  return check_value_cache(settings_);
}

bool LlamaModel::has_recurrent_part() const {
  const ModelFacts& facts = file_->facts();
  return !settings_.prediction && (facts.recurrent || facts.hybrid);
}

void LlamaModel::set_hidden() {
  if (settings_.is_head()) settings_.hidden = {.last = true, .layer_inputs = {}};
  if (!settings_.hidden.any()) return;
  if (!settings_.is_head()) {
    capabilities_.hidden_reason =
        why_not_hidden(file_->facts(), settings_.hidden, capabilities_.n_sequences);
    if (!capabilities_.hidden_reason.empty()) settings_.hidden = {};
  }
  capabilities_.n_hidden = hidden_width(*file_, settings_.hidden);
  if (settings_.is_head()) capabilities_.n_hidden_in = capabilities_.n_hidden;
  if (settings_.head_of != nullptr) capabilities_.n_encoded = encoder_width(*file_);
}

Status LlamaModel::choose_sizes(const ModelOptions& options) {
  const ModelFacts& facts = file_->facts();
  const bool attention_only = !has_recurrent_part();
  OUTRIDER_RETURN_IF_ERROR(check_rope_base(facts.architecture, settings_));
  capabilities_.n_sequences = options.n_sequences;
  set_hidden();
  Result<ContextSizes> sizes = plan_sizes(options, settings_,
                                          {.n_ctx_train = facts.n_ctx_train,
                                           .position_table = facts.position_table,
                                           .attention_only = attention_only});
  if (!sizes.ok()) return sizes.status();
  capabilities_.n_vocab = facts.n_vocab;
  capabilities_.n_ctx = sizes->n_ctx;
  capabilities_.n_sequences = sizes->n_sequences;
  capabilities_.max_width = sizes->max_width;
  capabilities_.max_leaves = sizes->max_leaves;
  if (capabilities_.max_leaves == 1) {
    capabilities_.branches_reason = "its steps hold " + std::to_string(sizes->max_width) +
                                    " tokens of a sequence, too few for a branch";
  }
  settings_.max_width = sizes->max_width;
  settings_.keep_cell_order = settings_.keep_cell_order && attention_only && !settings_.for_probe;
  if (!facts.lock_failure.empty()) {
    notes_.push_back("the weights could not be kept from being swapped out (use_mlock): " +
                     facts.lock_failure + "; raise the limit of locked memory (ulimit -l)");
  }
  if (facts.n_ctx_train > 0 && sizes->n_ctx > facts.n_ctx_train) {
    notes_.push_back("the context of " + std::to_string(sizes->n_ctx) +
                     " tokens is longer than the " + std::to_string(facts.n_ctx_train) +
                     " that the model was trained with");
  }
  if (sizes->n_ctx < options.n_ctx && !settings_.for_probe) {
    notes_.push_back("the context is " + std::to_string(sizes->n_ctx) + " tokens, not " +
                     std::to_string(options.n_ctx) +
                     ": the model has a table of positions, which ends there");
  }
  cache_bytes_ = static_cast<std::uint64_t>(sizes->n_cells) *
                 facts.kv_bytes_per_token(settings_.type_k, settings_.type_v);
  if (!settings_.is_head()) cache_bytes_ += facts.states.bytes(sizes->n_sequences);
  if (settings_.prediction) {  // a cache of its layers alone
    cache_bytes_ = cache_bytes_ * static_cast<std::uint64_t>(facts.n_prediction) /
                   static_cast<std::uint64_t>(std::max(1, facts.n_layer + facts.n_prediction));
  }
  const std::uint64_t limit = memory_limit();
  if (facts.all_on_cpu && limit > 0 && cache_bytes_ > limit) {
    return resource_exhausted("a context of " + std::to_string(sizes->n_ctx) + " tokens (" +
                              std::to_string(sizes->n_sequences) + " sequences) needs " +
                              gibibytes(cache_bytes_) + " for its cache, and this machine has " +
                              gibibytes(limit) + "; take a smaller one (ctx)" +
                              (facts.n_swa > 0 ? kWindowsKeepAll : ""));
  }
  return make_context(*sizes);
}

Status LlamaModel::make_context(const ContextSizes& sizes) {
  llama_context_params params = make_params(sizes, settings_);
  params.yarn_orig_ctx = static_cast<std::uint32_t>(file_->facts().yarn_orig_ctx);
  params.abort_callback = [](void* self) {
    return static_cast<const LlamaModel*>(self)->interrupted();
  };
  params.abort_callback_data = this;

  const LogCapture log(file_->log());
  context_ = std::make_unique<Context>();
  bool no_flash = false;
  OUTRIDER_ASSIGN_OR_RETURN(context_->handle,
                            make_llama_context(*file_, params, sizes.n_cells, &no_flash));
  if (no_flash) {
    settings_.flash_attention = false;
    notes_.push_back(
        "flash attention is off: a device has none for this model's heads and cache types");
  }
  hand_out(context_->handle.get(), settings_.hidden);
  if (settings_.prediction) {
    choose_prediction_layer(context_->handle.get(), settings_.prediction_layer);
  }
  OUTRIDER_RETURN_IF_ERROR(file_->adapters().apply(context_->handle.get()));
  context_->memory = llama_get_memory(handle());
  context_->junk_id = static_cast<llama_seq_id>(llama_max_parallel_sequences()) - 1;
  n_threads_ = sizes.n_threads;
  n_outputs_max_ = sizes.n_outputs;
  settings_.n_cells = static_cast<std::int32_t>(llama_n_ctx(handle()));  // rounded up by llama.cpp
  capabilities_.n_batch = static_cast<std::int32_t>(llama_n_batch(handle()));
  context_->batch.reserve(static_cast<std::size_t>(capabilities_.n_batch));
  ledger_ = CellLedger(
      settings_.n_cells, capabilities_.n_sequences + (settings_.for_probe ? 1 : 0),
      settings_.keep_cell_order ? CellLedger::Policy::kInOrder : CellLedger::Policy::kFreeAtOnce,
      file_->facts().n_swa > 0 ? CellLedger::Rebuild::kForRoom : CellLedger::Rebuild::kForTimeToo);
  const std::int32_t n_extra = capabilities_.max_leaves - 1;
  tree_ids_.clear();
  for (SeqId seq = 0; seq < capabilities_.n_sequences; ++seq) {
    tree_ids_.emplace_back(seq, capabilities_.n_sequences + seq * n_extra, n_extra);
  }
  lengths_.assign(static_cast<std::size_t>(capabilities_.n_sequences), 0);
  shortest_.assign(static_cast<std::size_t>(capabilities_.n_sequences), 0);
  saved_.assign(static_cast<std::size_t>(capabilities_.n_sequences), {});
  return Status();
}

// What a sequence shares with a lower one is not saved a second time: while the rest is copied, the
// sequence is without it, and it gets it back from the lower one behind the copying, and once more
// when both have been put back.
struct LlamaModel::SavedCells {
  SeqId seq = 0;
  CellLedger::Shared shared;
  std::size_t size = 0;  // 0: all is shared
  std::unique_ptr<std::uint8_t[]> data;
};

bool LlamaModel::save_cells(SavedCells& saved) {
  saved.shared = ledger_.shared(saved.seq);
  const Pos n_shared = saved.shared.length;
  if (n_shared == ledger_.length(saved.seq)) return true;
  if (n_shared > 0) llama_memory_seq_rm(context_->memory, saved.seq, 0, n_shared);
  bool done = false;
  try {
    saved.size = llama_state_seq_get_size(handle(), saved.seq);
    saved.data = std::make_unique_for_overwrite<std::uint8_t[]>(saved.size);
    done = saved.size > 0 && llama_state_seq_get_data(handle(), saved.data.get(), saved.size,
                                                      saved.seq) == saved.size;
  } catch (const std::bad_alloc&) {
    share_again(saved);
    throw;
  }
  share_again(saved);
  return done;
}

void LlamaModel::share_again(const SavedCells& saved) {
  const Pos n_shared = saved.shared.length;
  if (n_shared > 0) {
    copy({.from = saved.shared.from, .to = saved.seq, .begin = 0, .end = n_shared});
  }
}

bool LlamaModel::put_back(const SavedCells& saved) {
  const bool read =
      saved.size == 0 ||
      llama_state_seq_set_data(handle(), saved.data.get(), saved.size, saved.seq) == saved.size;
  share_again(saved);
  const llama_pos last = llama_memory_seq_pos_max(context_->memory, saved.seq);
  return read && last == ledger_.length(saved.seq) - 1;
}

// Bytes that save_cells() of all sequences takes, nearly: of a sequence the part that it does not
// share.
std::uint64_t LlamaModel::bytes_to_save() const {
  std::uint64_t bytes = 0;
  for (SeqId seq = 0; seq < capabilities_.n_sequences; ++seq) {
    const Pos length = ledger_.length(seq);
    const Pos own = length - ledger_.shared(seq).length;
    if (own == 0) continue;
    bytes +=
        saved_bytes(seq) / static_cast<std::uint64_t>(length) * static_cast<std::uint64_t>(own);
  }
  return bytes;
}

// Asked for before, since the kernel gives memory that it does not have, and ends the process when
// it is written to.
Status LlamaModel::check_memory_to_compact() const {
  const std::uint64_t needed = bytes_to_save();
  const std::uint64_t free = free_memory_();
  if (free == 0 || needed <= free) return Status();
  return resource_exhausted(
      "not enough memory to rebuild the cache: a copy of what it holds takes " + gibibytes(needed) +
      ", and " + gibibytes(free) + " are free");
}

Status LlamaModel::compact() {
  const LogCapture log(file_->log());
  std::vector<SavedCells> all;
  try {
    OUTRIDER_RETURN_IF_ERROR(check_memory_to_compact());
    for (SeqId seq = 0; seq < capabilities_.n_sequences; ++seq) {
      if (ledger_.length(seq) == 0) continue;
      all.push_back({.seq = seq, .shared = {}, .size = 0, .data = nullptr});
      if (save_cells(all.back())) continue;
      return internal_error("llama.cpp cannot save sequence " + std::to_string(seq) +
                            log.because());
    }
  } catch (const std::bad_alloc&) {
    return resource_exhausted("not enough memory to rebuild the cache");
  }
  clear_cache();
  ledger_.compacted();
  ++compactions_;
  Status status;
  for (const SavedCells& saved : all) {
    const std::size_t i = static_cast<std::size_t>(saved.seq);
    if (put_back(saved)) {
      if (llama_memory_seq_pos_min(context_->memory, saved.seq) > 0) shortest_[i] = lengths_[i];
      continue;
    }
    status = internal_error("llama.cpp cannot put back sequence " + std::to_string(saved.seq) +
                            log.because());
  }
  if (status.ok()) return status;
  lose_all();  // never seen: rather an empty cache than one that the ledger does not describe
  return status;
}

Status LlamaModel::compact_for(std::int32_t n) {
  if (!ledger_.compaction_due(n)) return Status();
  const Status status = compact();
  if (status.code() != StatusCode::kResourceExhausted) return status;
  ledger_.put_off();
  const bool fits = n <= ledger_.empty();
  return fits ? Status() : status;
}

std::string LlamaModel::check_integrity() const {
  const std::string ledger = ledger_.check_integrity();
  if (!ledger.empty()) return "ledger: " + ledger;
  for (SeqId seq = 0; seq < capabilities_.n_sequences; ++seq) {
    const std::string where = "sequence " + std::to_string(seq) + ": ";
    const std::size_t i = static_cast<std::size_t>(seq);
    const TreeIds& ids = this->tree_ids(seq);
    const Pos n = ledger_.length(seq);
    if (n != lengths_[i] + ids.n_tokens()) {
      return where + "the ledger has " + std::to_string(n) + " tokens, " +
             std::to_string(lengths_[i]) + " are kept and " + std::to_string(ids.n_tokens()) +
             " tentative";
    }
    for (std::int32_t index = 0; index <= ids.n_extra(); ++index) {
      const std::string which = where + "id " + std::to_string(ids.id(index)) + ": ";
      const Pos held = ids.held(index, lengths_[i]);
      const llama_pos last = llama_memory_seq_pos_max(context_->memory, ids.id(index));
      if (last != held - 1) {
        return which + "llama.cpp's last position is " + std::to_string(last) + ", not " +
               std::to_string(held - 1);
      }
      const llama_pos first = llama_memory_seq_pos_min(context_->memory, ids.id(index));
      if (shortest_[i] == 0 && ledger_.in_order() && first != (held > 0 ? 0 : -1)) {
        return which + "llama.cpp's first position is " + std::to_string(first);
      }
    }
  }
  const bool junk = llama_memory_seq_pos_max(context_->memory, context_->junk_id) >= 0;
  if (ledger_.in_order() && junk != (ledger_.parked() > 0)) return "the parked cells disagree";
  return "";
}

}  // namespace outrider::llama
