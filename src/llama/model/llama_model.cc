// The step: evaluate. Its end is in llama_commit.cc, making the context in llama_context.cc.
#include "llama/model/llama_model.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <new>
#include <string>

#include "base/caught.h"
#include "llama/base/backend.h"
#include "llama/kernels/compute_threads.h"
#include "llama/model/context.h"

namespace outrider::llama {
namespace {

std::string sequence(SeqId seq) { return "sequence " + std::to_string(seq); }

std::int32_t new_nodes(const EvalItem& item) {
  return item.tree == nullptr ? 0 : item.tree->size() - item.first_new;
}

}  // namespace

LlamaModel::LlamaModel() = default;
LlamaModel::~LlamaModel() = default;

llama_context* LlamaModel::handle() const { return context_->handle.get(); }

Pos LlamaModel::length(SeqId seq) const { return lengths_[static_cast<std::size_t>(seq)]; }

std::int32_t LlamaModel::room(SeqId seq) const {
  const std::int32_t in_context = capabilities_.n_ctx - length(seq) - tree_ids(seq).n_tokens();
  // Parked cells are won back by rebuilding the cache, which waits for the commits.
  const std::int32_t parked = any_open() ? ledger_.parked() : 0;
  const std::int32_t in_cache = ledger_.n_cells() - ledger_.live() - parked;
  return std::max(0, std::min(in_context, in_cache));
}

void LlamaModel::set_interrupt(const std::atomic<bool>* flag) { interrupt_ = flag; }

bool LlamaModel::interrupted() const {
  return interrupt_ != nullptr && interrupt_->load(std::memory_order_relaxed);
}

bool LlamaModel::any_open() const {
  return std::any_of(tree_ids_.begin(), tree_ids_.end(), [](const TreeIds& t) { return t.open(); });
}

Status LlamaModel::validate_tokens(const EvalItem& item) const {
  const auto check = [&](Token token) {
    if (token >= 0 && token < capabilities_.n_vocab) return Status();
    return invalid_argument("token " + std::to_string(token) + " of " + sequence(item.seq) +
                            " is not in the vocabulary of " +
                            std::to_string(capabilities_.n_vocab) + " tokens");
  };
  for (const Token token : item.prefix) OUTRIDER_RETURN_IF_ERROR(check(token));
  const std::int32_t n_nodes = item.tree == nullptr ? 0 : item.tree->size();
  for (NodeId id = item.first_new; id < n_nodes; ++id) {
    OUTRIDER_RETURN_IF_ERROR(check(item.tree->token(id)));  // NOLINT: not null, n_nodes > 0
  }
  return Status();
}

Status LlamaModel::validate_growth(const EvalItem& item) const {
  assert(tree_ids(item.seq).open() == (item.first_new > 0));
  if (item.first_new == 0) return Status();
  if (capabilities_.rollback != Rollback::kAny) {
    return unsupported("a tree of this model cannot grow: " + capabilities_.rollback_reason);
  }
  const bool grown = item.prefix.empty() && item.tree != nullptr &&
                     tree_ids(item.seq).is_grown(*item.tree, item.first_new);
  if (grown) return Status();
  return invalid_argument(sequence(item.seq) + " has a tentative tree of " +
                          std::to_string(tree_ids(item.seq).n_nodes()) +
                          " nodes, and what was given is not that tree with more behind it");
}

Status LlamaModel::validate_item(const EvalItem& item) const {
  const std::int32_t n_nodes = item.tree == nullptr ? 0 : item.tree->size();
  if (n_nodes > capabilities_.max_width) {
    return invalid_argument(sequence(item.seq) + " asks for a width of " + std::to_string(n_nodes) +
                            " tokens; the model takes at most " +
                            std::to_string(capabilities_.max_width));
  }
  if (item.tree != nullptr && !item.tree->is_chain()) {
    if (capabilities_.max_leaves == 1) {
      return invalid_argument(sequence(item.seq) +
                              " asks for a tree with branches; the model takes chains only: " +
                              capabilities_.branches_reason);
    }
    const std::size_t n_leaves = item.tree->leaves().size();
    if (n_leaves > static_cast<std::size_t>(capabilities_.max_leaves)) {
      return invalid_argument(sequence(item.seq) + " asks for a tree with " +
                              std::to_string(n_leaves) + " leaves; the model takes at most " +
                              std::to_string(capabilities_.max_leaves));
    }
  }
  OUTRIDER_RETURN_IF_ERROR(validate_growth(item));
  OUTRIDER_RETURN_IF_ERROR(validate_tokens(item));
  const std::size_t n_new = item.prefix.size() + static_cast<std::size_t>(new_nodes(item));
  if (item.hidden.size() != n_new * static_cast<std::size_t>(capabilities_.n_hidden_in)) {
    return invalid_argument(sequence(item.seq) + " has " + std::to_string(n_new) +
                            " new tokens, and hidden states of " +
                            std::to_string(item.hidden.size()) + " numbers, not " +
                            std::to_string(capabilities_.n_hidden_in) + " for each");
  }
  const std::size_t end = static_cast<std::size_t>(length(item.seq)) +
                          static_cast<std::size_t>(tree_ids(item.seq).n_tokens()) +
                          item.prefix.size() + static_cast<std::size_t>(n_nodes - item.first_new);
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
    const std::size_t nodes = static_cast<std::size_t>(new_nodes(item));
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

// Cells in the ledger, ids and tokens in the batch: llama.cpp gives cells in the batch's order.
void LlamaModel::add_to_batch(const EvalItem& item, bool all_rows) {
  TreeIds& ids = this->tree_ids(item.seq);
  if (item.first_new == 0) {
    ids.begin(length(item.seq), static_cast<std::int32_t>(item.prefix.size()));
  }
  if (item.tree != nullptr) {
    copies_.clear();
    ids.grow(*item.tree, &copies_);
    for (const TreeIds::Copy& copy : copies_) this->copy(copy);
  }
  context_->batch.add(item, ids, length(item.seq), all_rows);
  if (all_rows) n_rows_ += item.prefix.size();
  const std::int32_t n_nodes = ids.n_nodes();
  const std::size_t n_tokens = static_cast<std::size_t>(context_->batch.n_tokens()) -
                               item.prefix.size() -
                               static_cast<std::size_t>(n_nodes - item.first_new);
  evaluated_.push_back({.seq = item.seq,
                        .first_new = item.first_new,
                        .end = n_nodes,
                        .first_row = n_rows_,
                        .first_hidden = n_tokens});
  n_rows_ += static_cast<std::size_t>(n_nodes - item.first_new);
  const bool fits = ledger_.append(
      item.seq, static_cast<std::int32_t>(item.prefix.size()) + n_nodes - item.first_new);
  assert(fits);
  static_cast<void>(fits);
}

Status LlamaModel::prepare_batch(std::span<const EvalItem> items, std::int32_t n_tokens) {
  if (!any_open()) OUTRIDER_RETURN_IF_ERROR(compact_for(n_tokens));
  if (n_tokens > ledger_.empty()) {
    return resource_exhausted("the cache has room for " + std::to_string(ledger_.empty()) +
                              " more tokens, and the evaluation holds " + std::to_string(n_tokens));
  }
  context_->batch.clear();
  evaluated_.clear();
  n_rows_ = 0;
  // llama.cpp's EAGLE-3 graph does not select rows: it would take the first ones for those asked
  // for.
  const bool all_rows = settings_.head_of != nullptr &&
                        std::any_of(items.begin(), items.end(),
                                    [](const EvalItem& item) { return item.tree != nullptr; });
  for (const EvalItem& item : items) add_to_batch(item, all_rows);
  return Status();
}

// The meaning of llama_decode's codes is llama.h's.
Status LlamaModel::decode(bool* out_of_cells) {
  const LogCapture log(decode_log_);
  state_touched_ = true;
  std::int32_t code = 0;
  const ComputeThreads own_threads(file_->teams(), settings_.cores);
  try {
    code = llama_decode(handle(), context_->batch.view());
    rows_ = code == 0 && n_rows_ > 0 ? llama_get_logits(handle()) : nullptr;
    // Waits as asking for rows does: a device would still compute, so that whoever takes the time
    // saw none of it, and its error would come with a later call.
    if (code == 0 && n_rows_ == 0) llama_synchronize(handle());
  } catch (const std::bad_alloc&) {
    throw;  // llama.cpp's cells may be half written: nothing can be taken out of them (LostOnThrow)
  } catch (const std::exception& error) {
    return caught(error).with_context("llama.cpp failed to evaluate a batch");
  }
  *out_of_cells = code == 1;
  state_touched_ = code != 1 && code != -1;  // -1: the batch was refused
  if (code == 0) {
    if (n_rows_ > 0 && rows_ == nullptr) return internal_error("llama.cpp gave no logits");
    return take_hidden();
  }
  if (code == 1) {
    return resource_exhausted("llama.cpp found no cells for " +
                              std::to_string(context_->batch.n_tokens()) + " tokens");
  }
  if (code == 2) return cancelled("the evaluation was interrupted");
  return internal_error("llama.cpp failed to evaluate a batch of " +
                        std::to_string(context_->batch.n_tokens()) + " tokens (code " +
                        std::to_string(code) + ")" + log.because());
}

// Copied: the next decode may come before they are read.
Status LlamaModel::take_hidden() {
  hidden_.clear();
  if (capabilities_.n_hidden == 0) return Status();
  const bool there = append_hidden(handle(), settings_.hidden,
                                   static_cast<std::size_t>(context_->batch.n_tokens()),
                                   static_cast<std::size_t>(capabilities_.n_hidden), &hidden_);
  return there ? Status() : internal_error("llama.cpp gave no hidden states");
}

Status LlamaModel::evaluate(std::span<const EvalItem> items) {
  const LostOnThrow guard(*this);
  OUTRIDER_RETURN_IF_ERROR(validate(items));
  if (interrupted()) return cancelled("the evaluation was interrupted");
  return capabilities_.rollback == Rollback::kSaved ? evaluate_saving(items) : run(items);
}

Status LlamaModel::run(std::span<const EvalItem> items) {
  std::int32_t n_tokens = 0;
  for (const EvalItem& item : items) {
    n_tokens += static_cast<std::int32_t>(item.prefix.size()) + new_nodes(item);
  }
  bool out_of_cells = false;
  OUTRIDER_RETURN_IF_ERROR(prepare_batch(items, n_tokens));
  Status status = decode(&out_of_cells);
  if (out_of_cells && undo_evaluate(status).code() == status.code()) {
    // The ledger counted right, so this is somebody else's doing; a clean cache may still do.
    if (any_open() || settings_.for_probe) return status;
    OUTRIDER_RETURN_IF_ERROR(compact());
    OUTRIDER_RETURN_IF_ERROR(prepare_batch(items, n_tokens));
    status = decode(&out_of_cells);
  }
  if (!status.ok()) return undo_evaluate(status);
  assert(check_integrity().empty());
  return Status();
}

Status LlamaModel::encode(std::span<const float> rows, std::vector<float>* encoded) {
  const std::size_t width = static_cast<std::size_t>(capabilities_.n_encoded);
  assert(width > 0 && rows.size() % width == 0);
  const std::size_t before = encoded->size();
  const std::size_t most = static_cast<std::size_t>(capabilities_.n_batch) * width;
  while (!rows.empty()) {
    const std::size_t n = std::min(most, rows.size());
    const Status status = encode_piece(rows.first(n), encoded);
    if (!status.ok()) {
      encoded->resize(before);
      return status;
    }
    rows = rows.subspan(n);
  }
  return Status();
}

Status LlamaModel::encode_piece(std::span<const float> rows, std::vector<float>* encoded) {
  if (interrupted()) return cancelled("encoding hidden states was interrupted");
  const LogCapture log(decode_log_);
  const std::size_t n_rows = rows.size() / static_cast<std::size_t>(capabilities_.n_encoded);
  const ComputeThreads own_threads(file_->teams(), settings_.cores);
  std::int32_t code = 0;
  try {
    code = append_encoded(handle(), rows, n_rows,
                          static_cast<std::size_t>(capabilities_.n_hidden_in), encoded);
  } catch (const std::exception& error) {
    return caught(error).with_context("llama.cpp failed to encode hidden states");
  }
  if (code == 0) return Status();
  if (code == 2) return cancelled("encoding hidden states was interrupted");
  return internal_error("llama.cpp failed to encode the hidden states of " +
                        std::to_string(n_rows) + " tokens (code " + std::to_string(code) + ")" +
                        log.because());
}

std::span<const float> LlamaModel::hidden(std::size_t item, std::size_t token) const {
  assert(item < evaluated_.size() && capabilities_.n_hidden > 0);
  const std::size_t width = static_cast<std::size_t>(capabilities_.n_hidden);
  return std::span(hidden_).subspan((evaluated_[item].first_hidden + token) * width, width);
}

std::span<const float> LlamaModel::logits(std::size_t item, NodeId node) const {
  assert(item < evaluated_.size());
  const Evaluated& evaluated = evaluated_[item];
  assert(node >= evaluated.first_new && node < evaluated.end);
  const std::size_t n_vocab = static_cast<std::size_t>(capabilities_.n_vocab);
  const std::size_t row =
      evaluated.first_row + static_cast<std::size_t>(node - evaluated.first_new);
  return {rows_ + row * n_vocab, n_vocab};
}

}  // namespace outrider::llama
