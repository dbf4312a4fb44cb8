// The end of a step: commit, truncate, and taking back what failed.
#include <algorithm>
#include <cassert>
#include <string>

#include "llama/model/context.h"
#include "llama/model/llama_model.h"

namespace outrider::llama {
namespace {

std::string sequence(SeqId seq) { return "sequence " + std::to_string(seq); }

}  // namespace

void LlamaModel::copy(const TreeIds::Copy& copy) {
  llama_memory_seq_cp(context_->memory, copy.from, copy.to, copy.begin, copy.end);
}

Status LlamaModel::take(const std::vector<TreeIds::Removal>& removed) {
  Status status;
  for (const TreeIds::Removal& r : removed) {
    const bool done = llama_memory_seq_rm(context_->memory, r.id, r.from > 0 ? r.from : -1, -1);
    if (done && llama_memory_seq_pos_max(context_->memory, r.id) == r.from - 1) continue;
    status = internal_error("llama.cpp could not take sequence id " + std::to_string(r.id) +
                            " back to " + std::to_string(r.from) + " tokens");
  }
  return status;
}

void LlamaModel::clear_cache() {
  llama_memory_clear(context_->memory, /*data=*/false);
  for (TreeIds& t : tree_ids_) t.detach();
}

// Nothing is left of any sequence, whatever state they were in. Takes no memory.
void LlamaModel::lose_all() {
  llama_memory_clear(context_->memory, /*data=*/false);
  for (TreeIds& t : tree_ids_) t.lose();
  ledger_.clear();
  std::fill(lengths_.begin(), lengths_.end(), 0);
  std::fill(shortest_.begin(), shortest_.end(), 0);
  for (Saved& saved : saved_) saved.length = -1;
  evaluated_.clear();
}

// Nothing is left of `seq`, whatever state it was in. Removing a whole sequence never fails
// (llama.h).
void LlamaModel::forget(SeqId seq) {
  const std::size_t i = static_cast<std::size_t>(seq);
  drop_copies(seq);
  const CellLedger::Cut cut = ledger_.cut(seq, 0);
  if (cut.clear_all) {
    llama_memory_clear(context_->memory, /*data=*/false);
  } else {
    if (cut.freed_from > cut.parked_from) {
      copy({.from = seq, .to = context_->junk_id, .begin = cut.parked_from, .end = cut.freed_from});
    }
    llama_memory_seq_rm(context_->memory, seq, -1, -1);
  }
  if (tree_ids(seq).open()) {
    std::vector<TreeIds::Removal> removed;
    tree_ids(seq).undo(0, &removed);
  }
  for (std::int32_t n = 1; n <= tree_ids(seq).n_extra(); ++n) {
    llama_memory_seq_rm(context_->memory, tree_ids(seq).id(n), -1, -1);
  }
  tree_ids(seq).detach();
  lengths_[i] = 0;
  shortest_[i] = 0;
}

// Takes back what the failed evaluation put in, the last item first, so that nothing is parked.
Status LlamaModel::undo_evaluate(const Status& why) {
  Status result = why;
  while (!evaluated_.empty()) {
    const Evaluated item = evaluated_.back();
    evaluated_.pop_back();
    TreeIds& ids = this->tree_ids(item.seq);
    const bool grown = item.first_new > 0;
    const Pos length = this->length(item.seq) + (grown ? ids.n_prefix() + item.first_new : 0);
    std::vector<TreeIds::Removal> removed;
    ids.undo(item.first_new, &removed);
    const CellLedger::Cut cut = ledger_.cut(item.seq, length);
    assert(cut.parked_from == cut.freed_from);
    if (cut.clear_all) {
      clear_cache();
      continue;
    }
    if (state_touched_ && capabilities_.rollback != Rollback::kAny) {
      // Half of a batch is in the state; what llama.cpp says of it would not be true.
      if (!restore_state(item.seq)) forget(item.seq);
      continue;
    }
    // Without looking at what llama.cpp took back itself: this removes whatever is left.
    const Status taken = take(removed);
    if (taken.ok()) continue;
    forget(item.seq);
    result = internal_error(why.message() + "; and then: " + taken.message());
  }
  n_rows_ = 0;
  rows_ = nullptr;
  assert(check_integrity().empty());
  return result;
}

Status LlamaModel::check_path(SeqId seq, std::span<const NodeId> path) const {
  const TreeIds& ids = this->tree_ids(seq);
  NodeId previous = kNoNode;
  for (const NodeId id : path) {
    if (id < 0 || id >= ids.n_nodes() || ids.parent(id) != previous) {
      return invalid_argument("node " + std::to_string(id) + " is not a child of node " +
                              std::to_string(previous) + " in the tree of " + sequence(seq));
    }
    previous = id;
  }
  return Status();
}

// Of the tentative tokens, the prefix and the path stay, or (!kept) none.
Status LlamaModel::settle(SeqId seq, bool kept, std::span<const NodeId> path) {
  TreeIds& ids = this->tree_ids(seq);
  const Pos before = length(seq);
  const Pos after = kept ? ids.base() + static_cast<Pos>(path.size()) : before;
  const std::vector<std::int32_t>& all = ledger_.cells(seq);
  cells_.assign(all.begin() + before, all.end());
  offsets_.clear();
  for (std::int32_t i = 0; kept && i < ids.n_prefix(); ++i) offsets_.push_back(i);
  for (const NodeId id : path) offsets_.push_back(ids.n_prefix() + id);
  const CellLedger::Picked picked = ledger_.pick(seq, before, offsets_);
  const TreeIds::Settlement settlement = ids.settle(kept, path, cells_, picked.park_below);
  if (picked.clear_all) {
    clear_cache();
    return Status();
  }
  for (TreeIds::Copy parked : settlement.parked) {
    parked.to = context_->junk_id;
    copy(parked);
  }
  const Status taken = take(settlement.removed);
  if (!taken.ok()) {
    forget(seq);
    return internal_error(taken.message() + "; " + sequence(seq) + " is lost");
  }
  for (const TreeIds::Copy& c : settlement.copied) copy(c);
  lengths_[static_cast<std::size_t>(seq)] = after;
  return Status();
}

Status LlamaModel::commit(SeqId seq, std::span<const NodeId> path) {
  assert(seq >= 0 && seq < capabilities_.n_sequences && tree_ids(seq).open());
  const LostOnThrow guard(*this);
  const bool any = capabilities_.rollback == Rollback::kAny;
  Status status = check_path(seq, path);
  if (status.ok()) {
    status = any ? settle(seq, true, path) : commit_state(seq, path);
  } else if (any) {
    OUTRIDER_RETURN_IF_ERROR(settle(seq, false, {}));
  } else {
    forget(seq);
  }
  assert(check_integrity().empty());
  return status;
}

// Removes all but the first `length` tokens of `seq`, which has nothing on ids.
Status LlamaModel::drop_suffix(SeqId seq, Pos length) {
  std::vector<TreeIds::Removal> removed;
  tree_ids(seq).truncate(length, &removed);
  removed.push_back({.id = seq, .from = length});
  if (length == 0) drop_copies(seq);
  const CellLedger::Cut cut = ledger_.cut(seq, length);
  if (cut.clear_all) {
    clear_cache();
    return Status();
  }
  if (cut.freed_from > cut.parked_from) {
    copy({.from = seq, .to = context_->junk_id, .begin = cut.parked_from, .end = cut.freed_from});
  }
  const Status taken = take(removed);
  if (taken.ok()) return Status();
  forget(seq);
  return internal_error(taken.message() + "; " + sequence(seq) + " is lost");
}

Status LlamaModel::truncate(SeqId seq, Pos length) {
  assert(seq >= 0 && seq < capabilities_.n_sequences);
  assert(length >= 0 && length <= this->length(seq) && (length == 0 || !tree_ids(seq).open()));
  const LostOnThrow guard(*this);
  const std::size_t i = static_cast<std::size_t>(seq);
  if (tree_ids(seq).open()) {
    if (capabilities_.rollback == Rollback::kAny) {
      OUTRIDER_RETURN_IF_ERROR(settle(seq, false, {}));
    } else {
      forget(seq);
    }
  }
  if (length == this->length(seq)) return Status();
  if (length > 0 && capabilities_.rollback != Rollback::kAny) {
    return unsupported("a sequence of this model can only be forgotten as a whole: " +
                       capabilities_.rollback_reason);
  }
  if (length > 0 && length < shortest_[i]) {
    return unsupported(
        sequence(seq) + " can be cut to 0 or at least " + std::to_string(shortest_[i]) +
        " tokens: " +
        (settings_.for_probe ? "it is deepened" : "what lay before the sliding window is gone"));
  }
  OUTRIDER_RETURN_IF_ERROR(drop_suffix(seq, length));
  lengths_[i] = length;
  if (length == 0) shortest_[i] = 0;
  assert(check_integrity().empty());
  return Status();
}

Status LlamaModel::share(SeqId from, SeqId to, Pos length) {
  assert(from >= 0 && from < capabilities_.n_sequences);
  assert(from != to && length >= 0 && length <= this->length(from));
  const LostOnThrow guard(*this);
  OUTRIDER_RETURN_IF_ERROR(truncate(to, 0));
  if (!capabilities_.can_share) {
    return unsupported("the sequences of this model cannot share a text");
  }
  if (length == 0) return Status();
  copy({.from = from, .to = to, .begin = 0, .end = length});
  ledger_.share(from, to, length);
  lengths_[static_cast<std::size_t>(to)] = length;
  const bool whole = llama_memory_seq_pos_min(context_->memory, to) == 0 &&
                     llama_memory_seq_pos_max(context_->memory, to) == length - 1;
  if (!whole) {
    forget(to);
    return internal_error("llama.cpp could not share the text of " + sequence(from) + " with " +
                          sequence(to));
  }
  assert(check_integrity().empty());
  return Status();
}

}  // namespace outrider::llama
