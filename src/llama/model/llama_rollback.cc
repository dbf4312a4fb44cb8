// The ways back of models that cannot simply drop cells.
//
// Recurrent layers (Mamba, RWKV, and a part of LFM2, Qwen3.5, ...) fold the text into one state.
// Two ways back to an earlier one, for chains:
//
//   snapshots   ten architectures of llama.cpp v0.5.0 keep the states after the last 8 tokens of an
//               evaluation (n_rs_seq); dropping a suffix then picks one, once per evaluation. The
//               chain is at most that long, its root is always kept.
//   saved       the state is copied before the root of a chain is evaluated, behind the prefix,
//               which takes an evaluation of its own. When the whole chain is accepted, nothing is
//               lost; else the copy is put back, and what was accepted is the next step's prefix:
//
//      text a b | evaluate root x y z     save (a b), run; `root x` are accepted
//      text a b | prefix root x, root' ...     put back (a b); run root x; save; run root' ...
//
// Saving and putting back costs twice the size of the state in memory traffic (2.4 MB for
// Mamba-130M), and the second evaluation a pass over the weights: it pays when most chains are
// accepted as a whole, which is the planner's business. Tested by llama_rollback_test.cc.
#include <new>
#include <utility>

#include "llama/base/backend.h"
#include "llama/model/context.h"
#include "llama/model/llama_model.h"

namespace outrider::llama {

Status LlamaModel::save_state(SeqId seq) {
  Saved& saved = saved_[static_cast<std::size_t>(seq)];
  saved.length = -1;
  if (length(seq) == 0) return Status();  // forgetting is a way back
  const LogCapture log(file_->log());
  const llama_state_seq_flags flags = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
  try {
    saved.data.resize(llama_state_seq_get_size_ext(handle(), seq, flags));
  } catch (const std::bad_alloc&) {
    return resource_exhausted("not enough memory for a copy of the model's state");
  }
  const std::size_t written =
      llama_state_seq_get_data_ext(handle(), saved.data.data(), saved.data.size(), seq, flags);
  if (written == 0 || written != saved.data.size()) {
    return internal_error("llama.cpp cannot save the model's state" + log.because());
  }
  saved.length = length(seq);
  return Status();
}

// False when there is no copy of the state that `seq` had before what is tentative, or it cannot be
// put back.
bool LlamaModel::restore_state(SeqId seq) {
  Saved& saved = saved_[static_cast<std::size_t>(seq)];
  if (saved.length != length(seq) || saved.length <= 0) return false;
  const LogCapture log(file_->log());
  const llama_state_seq_flags flags = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
  const std::size_t read =
      llama_state_seq_set_data_ext(handle(), saved.data.data(), saved.data.size(), seq, flags);
  const bool cut =
      read == saved.data.size() && llama_memory_seq_rm(context_->memory, seq, saved.length, -1);
  return cut && llama_memory_seq_pos_max(context_->memory, seq) == saved.length - 1;
}

// With saved states a chain's prefix goes first, so that the state can be saved behind it.
Status LlamaModel::evaluate_saving(std::span<const EvalItem> items) {
  std::vector<EvalItem> prefixes;
  std::vector<EvalItem> chains(items.begin(), items.end());
  for (EvalItem& item : chains) {
    saved_[static_cast<std::size_t>(item.seq)].length = -1;
    if (item.prefix.empty() || item.tree == nullptr || item.tree->size() == 1) continue;
    prefixes.push_back({.seq = item.seq, .prefix = item.prefix});
    item.prefix = {};
  }
  std::vector<float> of_prefixes;
  if (!prefixes.empty()) {
    OUTRIDER_RETURN_IF_ERROR(run(prefixes));
    of_prefixes = std::move(hidden_);
    for (const EvalItem& item : prefixes) {
      OUTRIDER_RETURN_IF_ERROR(settle(item.seq, /*kept=*/true, {}));
    }
  }
  for (const EvalItem& item : chains) {
    if (item.tree != nullptr && item.tree->size() > 1) {
      OUTRIDER_RETURN_IF_ERROR(save_state(item.seq));
    }
  }
  OUTRIDER_RETURN_IF_ERROR(run(chains));
  if (capabilities_.n_hidden > 0 && !prefixes.empty()) join_hidden(items, prefixes, of_prefixes);
  return Status();
}

// Puts the hidden states of prefixes that went first back in front of their chains'.
void LlamaModel::join_hidden(std::span<const EvalItem> items, std::span<const EvalItem> prefixes,
                             const std::vector<float>& of_prefixes) {
  const std::size_t width = static_cast<std::size_t>(capabilities_.n_hidden);
  std::vector<float> all;
  std::size_t next = 0;  // of `prefixes`
  std::size_t first = 0;
  const auto append = [&](const std::vector<float>& from, std::size_t row, std::size_t n) {
    const std::span<const float> rows = std::span(from).subspan(row * width, n * width);
    all.insert(all.end(), rows.begin(), rows.end());
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::size_t begin = all.size() / width;
    std::size_t n = items[i].prefix.size();
    if (next < prefixes.size() && prefixes[next].seq == items[i].seq) {
      append(of_prefixes, first, n);
      first += n;
      n = 0;
      ++next;
    }
    if (items[i].tree != nullptr) n += static_cast<std::size_t>(items[i].tree->size());
    append(hidden_, evaluated_[i].first_hidden, n);
    evaluated_[i].first_hidden = begin;
  }
  hidden_ = std::move(all);
}

Status LlamaModel::commit_state(SeqId seq, std::span<const NodeId> path) {
  const TreeIds& ids = this->tree_ids(seq);
  const std::int32_t rejected = ids.n_nodes() - static_cast<std::int32_t>(path.size());
  const Pos kept = ids.base() + static_cast<Pos>(path.size());
  const bool snapshot = capabilities_.rollback == Rollback::kSnapshot && kept > 0 &&
                        rejected <= n_snapshots_ && rejected < ids.n_tokens();
  if (rejected == 0 || snapshot) return settle(seq, /*kept=*/true, path);
  if (capabilities_.rollback == Rollback::kSaved && restore_state(seq)) {
    return settle(seq, /*kept=*/true, {});
  }
  forget(seq);
  return Status();
}

}  // namespace outrider::llama
