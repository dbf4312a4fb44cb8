// The step: evaluate, commit, truncate. Making the context is in llama_context.cc.
#include "llama/llama_model.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <string>

#include "llama/backend.h"
#include "llama/context.h"

namespace outrider::llama {
namespace {

std::string sequence(SeqId seq) { return "sequence " + std::to_string(seq); }

}  // namespace

LlamaModel::LlamaModel() = default;
LlamaModel::~LlamaModel() = default;

llama_context* LlamaModel::handle() const { return context_->handle.get(); }

Pos LlamaModel::length(SeqId seq) const { return lengths_[static_cast<std::size_t>(seq)]; }

std::int32_t LlamaModel::room(SeqId seq) const {
  const std::int32_t in_context = capabilities_.n_ctx - length(seq);
  const std::int32_t in_cache = ledger_.n_cells() - ledger_.live();
  return std::max(0, std::min(in_context, in_cache));
}

void LlamaModel::set_interrupt(const std::atomic<bool>* flag) { interrupt_ = flag; }

bool LlamaModel::interrupted() const {
  return interrupt_ != nullptr && interrupt_->load(std::memory_order_relaxed);
}

bool LlamaModel::any_open() const {
  return std::any_of(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(n_pending_),
                     [](const Pending& p) { return p.open; });
}

Status LlamaModel::validate_item(const EvalItem& item) const {
  const std::int32_t n_nodes = item.tree == nullptr ? 0 : item.tree->size();
  if (n_nodes > capabilities_.max_width) {
    return invalid_argument(sequence(item.seq) + " asks for a width of " + std::to_string(n_nodes) +
                            " tokens; the model takes at most " +
                            std::to_string(capabilities_.max_width));
  }
  if (item.tree != nullptr && !item.tree->is_chain()) {
    return invalid_argument(sequence(item.seq) +
                            " asks for a tree with branches; the model takes chains only");
  }
  const auto check_token = [&](Token token) {
    if (token >= 0 && token < capabilities_.n_vocab) return Status();
    return invalid_argument("token " + std::to_string(token) + " of " + sequence(item.seq) +
                            " is not in the vocabulary of " +
                            std::to_string(capabilities_.n_vocab) + " tokens");
  };
  for (const Token token : item.prefix) OUTRIDER_RETURN_IF_ERROR(check_token(token));
  for (NodeId id = 0; id < n_nodes; ++id) {
    OUTRIDER_RETURN_IF_ERROR(check_token(item.tree->token(id)));
  }
  const std::size_t end = static_cast<std::size_t>(length(item.seq)) + item.prefix.size() +
                          static_cast<std::size_t>(n_nodes);
  if (end > static_cast<std::size_t>(capabilities_.n_ctx)) {
    return resource_exhausted(sequence(item.seq) + " would have " + std::to_string(end) +
                              " tokens; its context holds " + std::to_string(capabilities_.n_ctx));
  }
  return Status();
}

Status LlamaModel::validate(std::span<const EvalItem> items) const {
  std::size_t n_tokens = 0;
  std::size_t n_nodes = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const EvalItem& item = items[i];
    assert(item.seq >= 0 && item.seq < capabilities_.n_sequences);
    for (std::size_t j = 0; j < i; ++j) {
      if (items[j].seq == item.seq) {
        return invalid_argument(sequence(item.seq) + " is in the evaluation twice");
      }
    }
    OUTRIDER_RETURN_IF_ERROR(validate_item(item));
    const std::size_t nodes =
        item.tree == nullptr ? 0 : static_cast<std::size_t>(item.tree->size());
    n_tokens += item.prefix.size() + nodes;
    n_nodes += nodes;
  }
  if (n_tokens == 0) return invalid_argument("the evaluation holds no token");
  if (n_tokens > static_cast<std::size_t>(capabilities_.n_batch)) {
    return invalid_argument("the evaluation holds " + std::to_string(n_tokens) +
                            " tokens; the model takes at most " +
                            std::to_string(capabilities_.n_batch) + " at once");
  }
  assert(n_nodes <= static_cast<std::size_t>(n_outputs_max_));
  return Status();
}

void LlamaModel::add_token(Token token, Pos pos, SeqId seq, bool output) {
  const std::size_t i = static_cast<std::size_t>(context_->n_tokens++);
  context_->tokens[i] = token;
  context_->positions[i] = pos;
  context_->ids[i] = seq;
  context_->outputs[i] = output ? 1 : 0;
}

void LlamaModel::add_to_batch(const EvalItem& item, Pending* pending) {
  pending->seq = item.seq;
  pending->n_prefix = static_cast<std::int32_t>(item.prefix.size());
  pending->first_row = n_rows_;
  pending->parents.clear();
  pending->open = true;
  Pos pos = length(item.seq);
  for (const Token token : item.prefix) add_token(token, pos++, item.seq, /*output=*/false);
  const std::int32_t n_nodes = item.tree == nullptr ? 0 : item.tree->size();
  for (NodeId id = 0; id < n_nodes; ++id) {
    const TokenTree::Node& node = item.tree->node(id);
    add_token(node.token, pos + node.depth, item.seq, /*output=*/true);
    pending->parents.push_back(node.parent);
  }
  n_rows_ += pending->parents.size();
}

// Cells in the ledger and tokens in the batch, item by item: llama.cpp gives cells in that order.
Status LlamaModel::prepare_batch(std::span<const EvalItem> items, std::int32_t n_tokens) {
  if (ledger_.compaction_due(n_tokens)) OUTRIDER_RETURN_IF_ERROR(compact());
  if (n_tokens > ledger_.empty()) {
    return resource_exhausted("the cache has room for " + std::to_string(ledger_.empty()) +
                              " more tokens, and the evaluation holds " + std::to_string(n_tokens));
  }
  context_->n_tokens = 0;
  n_rows_ = 0;
  if (pending_.size() < items.size()) pending_.resize(items.size());
  for (const EvalItem& item : items) {
    Pending& pending = pending_[n_pending_++];
    add_to_batch(item, &pending);
    const bool fits = ledger_.append(item.seq, pending.n_prefix + pending.n_nodes());
    assert(fits);
    static_cast<void>(fits);
  }
  return Status();
}

// The meaning of llama_decode's codes is llama.h's.
Status LlamaModel::decode(bool* out_of_cells) {
  const LogCapture log(decode_log_);
  std::int32_t code = 0;
  try {
    code = llama_decode(handle(), context_->batch());
    rows_ = code == 0 && n_rows_ > 0 ? llama_get_logits(handle()) : nullptr;
  } catch (const std::exception& error) {
    return internal_error(std::string("llama.cpp failed to evaluate a batch: ") + error.what());
  }
  *out_of_cells = code == 1;
  if (code == 0) {
    if (n_rows_ > 0 && rows_ == nullptr) return internal_error("llama.cpp gave no logits");
    return Status();
  }
  if (code == 1) {
    return resource_exhausted("llama.cpp found no cells for " + std::to_string(context_->n_tokens) +
                              " tokens");
  }
  if (code == 2) return cancelled("the evaluation was interrupted");
  return internal_error("llama.cpp failed to evaluate a batch of " +
                        std::to_string(context_->n_tokens) + " tokens (code " +
                        std::to_string(code) + ")" + log.because());
}

// Takes back what the failed evaluation put in, the last item first, so that nothing is parked.
Status LlamaModel::undo_evaluate(const Status& why) {
  Status result = why;
  while (n_pending_ > 0) {
    Pending& pending = pending_[--n_pending_];
    pending.open = false;
    // Without looking at what llama.cpp took back itself: this removes whatever is left.
    const Status dropped = drop_suffix(pending.seq, length(pending.seq));
    if (!dropped.ok()) {
      result = internal_error(why.message() + "; and then: " + dropped.message());
    }
  }
  n_rows_ = 0;
  rows_ = nullptr;
  assert(check_integrity().empty());
  return result;
}

Status LlamaModel::evaluate(std::span<const EvalItem> items) {
  assert(!any_open());
  OUTRIDER_RETURN_IF_ERROR(validate(items));
  if (interrupted()) return cancelled("the evaluation was interrupted");
  std::int32_t n_tokens = 0;
  for (const EvalItem& item : items) {
    n_tokens += static_cast<std::int32_t>(item.prefix.size());
    if (item.tree != nullptr) n_tokens += item.tree->size();
  }
  n_pending_ = 0;
  bool out_of_cells = false;
  OUTRIDER_RETURN_IF_ERROR(prepare_batch(items, n_tokens));
  Status status = decode(&out_of_cells);
  if (out_of_cells && undo_evaluate(status).code() == status.code()) {
    // The ledger counted right, so this is somebody else's doing; a clean cache may still do.
    OUTRIDER_RETURN_IF_ERROR(compact());
    OUTRIDER_RETURN_IF_ERROR(prepare_batch(items, n_tokens));
    status = decode(&out_of_cells);
  }
  if (!status.ok()) return undo_evaluate(status);
  assert(check_integrity().empty());
  return Status();
}

std::span<const float> LlamaModel::logits(std::size_t item, NodeId node) const {
  assert(item < n_pending_ && node >= 0 && node < pending_[item].n_nodes());
  const std::size_t n_vocab = static_cast<std::size_t>(capabilities_.n_vocab);
  const std::size_t row = pending_[item].first_row + static_cast<std::size_t>(node);
  return {rows_ + row * n_vocab, n_vocab};
}

// Removes all but the first `length` tokens of `seq`, those on trial included, as the ledger says.
Status LlamaModel::drop_suffix(SeqId seq, Pos length) {
  const llama_memory_t memory = context_->memory;
  const CellLedger::Cut cut = ledger_.cut(seq, length);
  if (cut.clear_all) {
    llama_memory_clear(memory, /*data=*/false);
  } else {
    if (cut.freed_from > cut.parked_from) {
      llama_memory_seq_cp(memory, seq, context_->junk_id, cut.parked_from, cut.freed_from);
    }
    const bool removed = llama_memory_seq_rm(memory, seq, length > 0 ? length : -1, -1);
    if (!removed || llama_memory_seq_pos_max(memory, seq) != length - 1) {
      // Removing a whole sequence never fails (llama.h).
      const CellLedger::Cut rest = ledger_.cut(seq, 0);
      if (rest.freed_from > 0) {
        llama_memory_seq_cp(memory, seq, context_->junk_id, 0, rest.freed_from);
      }
      llama_memory_seq_rm(memory, seq, -1, -1);
      lengths_[static_cast<std::size_t>(seq)] = 0;
      shortest_[static_cast<std::size_t>(seq)] = 0;
      return internal_error(sequence(seq) + " could not be taken back to " +
                            std::to_string(length) + " tokens and is lost");
    }
  }
  return Status();
}

Status LlamaModel::commit(std::size_t item, std::span<const NodeId> path) {
  assert(item < n_pending_ && pending_[item].open);
  Pending& pending = pending_[item];
  pending.open = false;
  NodeId previous = kNoNode;
  for (const NodeId id : path) {
    if (id < 0 || id >= pending.n_nodes() ||
        pending.parents[static_cast<std::size_t>(id)] != previous) {
      OUTRIDER_RETURN_IF_ERROR(drop_suffix(pending.seq, length(pending.seq)));
      return invalid_argument("node " + std::to_string(id) + " is not a child of node " +
                              std::to_string(previous) + " in the tree of " +
                              sequence(pending.seq));
    }
    previous = id;
  }
  // In a chain the path is a prefix of the nodes.
  const Pos kept = length(pending.seq) + pending.n_prefix + static_cast<std::int32_t>(path.size());
  if (kept < ledger_.length(pending.seq)) OUTRIDER_RETURN_IF_ERROR(drop_suffix(pending.seq, kept));
  lengths_[static_cast<std::size_t>(pending.seq)] = kept;
  assert(check_integrity().empty());
  return Status();
}

Status LlamaModel::truncate(SeqId seq, Pos length) {
  assert(seq >= 0 && seq < capabilities_.n_sequences);
  assert(length >= 0 && length <= this->length(seq) && ledger_.length(seq) == this->length(seq));
  if (length == this->length(seq)) return Status();
  if (length > 0 && capabilities_.rollback != Rollback::kAny) {
    return unsupported("a sequence of this model can only be forgotten as a whole: " +
                       capabilities_.rollback_reason);
  }
  if (length > 0 && length < shortest_[static_cast<std::size_t>(seq)]) {
    return unsupported(sequence(seq) + " can be cut to 0 or at least " +
                       std::to_string(shortest_[static_cast<std::size_t>(seq)]) +
                       " tokens: what lay before the sliding window is gone");
  }
  OUTRIDER_RETURN_IF_ERROR(drop_suffix(seq, length));
  lengths_[static_cast<std::size_t>(seq)] = length;
  if (length == 0) shortest_[static_cast<std::size_t>(seq)] = 0;
  assert(check_integrity().empty());
  return Status();
}

}  // namespace outrider::llama
