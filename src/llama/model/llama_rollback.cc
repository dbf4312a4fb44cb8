// What a model can take back: checked when it is loaded, and the ways of those that cannot simply
// drop cells.
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
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <exception>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "llama/base/backend.h"
#include "llama/model/context.h"
#include "llama/model/context_params.h"
#include "llama/model/llama_model.h"

namespace outrider::llama {
namespace {

// Some devices add up in a varying order; a state that was not taken back is far off.
Status check_same(const std::vector<float>& wanted, const std::vector<float>& got) {
  float least = std::numeric_limits<float>::infinity();
  float most = -least;
  for (const float value : wanted) {
    if (!std::isfinite(value)) continue;  // tokens that a head does not know
    least = std::min(least, value);
    most = std::max(most, value);
  }
  const float tolerance = 1e-2f * (most - least);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == got[i] || std::fabs(wanted[i] - got[i]) <= tolerance) continue;
    return internal_error("its logits after a rollback differ from those before");
  }
  return Status();
}

constexpr std::array<NodeId, 1> kRootOnly{kRoot};

}  // namespace

// Of tokens before which nothing is known, for the checks of a head.
std::span<const float> LlamaModel::no_states(std::size_t n_tokens) {
  hidden_.assign(n_tokens * static_cast<std::size_t>(capabilities_.n_hidden_in), 0.0f);
  return hidden_;
}

// One more token of sequence 0, behind a prefix, kept only when asked for.
Status LlamaModel::evaluate_one(std::span<const Token> prefix, Token token, bool keep,
                                std::vector<float>* row) {
  const TokenTree root(token);
  const EvalItem item{
      .seq = 0, .prefix = prefix, .tree = &root, .hidden = no_states(prefix.size() + 1)};
  OUTRIDER_RETURN_IF_ERROR(evaluate({&item, 1}));
  const std::span<const float> logits = this->logits(0, kRoot);
  if (row != nullptr) row->assign(logits.begin(), logits.end());
  return commit(0, std::span<const NodeId>(kRootOnly).first(keep ? 1 : 0));
}

// Also the first use of the weights, so that a model which cannot run fails here and not in a
// request.
Status LlamaModel::check_rollback() {
  const ModelFacts& facts = file_->facts();
  n_snapshots_ = static_cast<std::int32_t>(llama_n_rs_seq(handle()));
  if (has_recurrent_part() || n_snapshots_ > 0) return check_state();
  capabilities_.can_share = facts.n_swa == 0;
  if (capabilities_.n_ctx < 2) return Status();
  OUTRIDER_RETURN_IF_ERROR(evaluate_one({}, 0, /*keep=*/true, nullptr));
  const Token token = std::min(1, capabilities_.n_vocab - 1);
  std::vector<float> first;
  std::vector<float> second;
  Status status = evaluate_one({}, token, /*keep=*/false, &first);
  if (status.ok()) status = evaluate_one({}, token, /*keep=*/false, &second);
  if (status.ok()) status = check_same(first, second);
  if (!status.ok()) {
    refuse_speculation(status.message());
  } else if (capabilities_.max_leaves > 1) {
    status = check_branches();
    if (!status.ok()) refuse_branches(status.message());
  }
  return truncate(0, 0);
}

void LlamaModel::refuse_speculation(const std::string& reason) {
  capabilities_.rollback = Rollback::kNone;
  capabilities_.max_width = 1;
  capabilities_.rollback_reason = reason;
  refuse_branches(reason);
}

void LlamaModel::refuse_branches(const std::string& reason) {
  capabilities_.max_leaves = 1;
  capabilities_.branches_reason = reason;
  capabilities_.can_share = false;  // both are cells that several ids read
}

// A branch behind another one must see its own path only. Sequence 0 holds one token.
Status LlamaModel::check_branches() {
  if (room(0) < 3) return Status();
  const Token last = capabilities_.n_vocab - 1;
  TokenTree tree(std::min(1, last));
  const NodeId side = tree.add(kRoot, 0, 1.0f, 1);
  const NodeId branch = tree.add(kRoot, last, 1.0f, 1);
  static_cast<void>(side);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &tree, .hidden = no_states(3)};
  OUTRIDER_RETURN_IF_ERROR(evaluate({&item, 1}));
  const std::span<const float> logits = this->logits(0, branch);
  const std::vector<float> got(logits.begin(), logits.end());
  OUTRIDER_RETURN_IF_ERROR(commit(0, kRootOnly));
  std::vector<float> wanted;
  OUTRIDER_RETURN_IF_ERROR(evaluate_one({}, last, /*keep=*/false, &wanted));
  if (check_same(wanted, got).ok()) return Status();
  return internal_error("the logits of a branch are not those of its own path");
}

// Snapshots where there are any, else saved states, else nothing.
Status LlamaModel::check_state() {
  const std::string what = "the " + file_->facts().architecture +
                           " architecture has recurrent layers, whose state cannot drop tokens";
  refuse_branches(what);
  OUTRIDER_RETURN_IF_ERROR(evaluate_one({}, 0, /*keep=*/true, nullptr));
  if (capabilities_.max_width < 2 || capabilities_.n_ctx < 4) {
    refuse_speculation(what + "; steps of one token need none of it");
    return truncate(0, 0);
  }
  const std::int32_t widest = capabilities_.max_width;
  Status status;
  for (const Rollback kind : {Rollback::kSnapshot, Rollback::kSaved}) {
    if (kind == Rollback::kSnapshot && n_snapshots_ == 0) continue;
    const bool snapshots = kind == Rollback::kSnapshot;
    capabilities_.rollback = kind;
    capabilities_.max_width = snapshots ? std::min(widest, n_snapshots_ + 1) : widest;
    capabilities_.rollback_reason =
        what + (snapshots ? "; chains of up to " + std::to_string(n_snapshots_ + 1) +
                                " tokens are taken back by llama.cpp's snapshots"
                          : "; a copy of it is kept while a chain is tentative");
    status = try_state();
    if (status.ok()) return truncate(0, 0);
    OUTRIDER_RETURN_IF_ERROR(truncate(0, 0));
  }
  refuse_speculation(what + " (" + status.message() + ")");
  return truncate(0, 0);
}

// A text in single steps, and the same text after a chain of which only the root was right.
Status LlamaModel::try_state() {
  const Token last = capabilities_.n_vocab - 1;
  const std::array<Token, 3> text{0, std::min(1, last), std::min(2, last)};
  std::vector<float> wanted;
  std::vector<float> got;
  OUTRIDER_RETURN_IF_ERROR(truncate(0, 0));
  for (const Token token : text) {
    OUTRIDER_RETURN_IF_ERROR(evaluate_one({}, token, /*keep=*/true, &wanted));
  }
  OUTRIDER_RETURN_IF_ERROR(truncate(0, 0));
  OUTRIDER_RETURN_IF_ERROR(evaluate_one({}, text[0], /*keep=*/true, nullptr));
  TokenTree chain(text[1]);
  NodeId tip = kRoot;
  for (std::int32_t i = 1; i < std::min(3, capabilities_.max_width); ++i) {
    tip = chain.add(tip, last, 1.0f, 1);
  }
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &chain};
  OUTRIDER_RETURN_IF_ERROR(evaluate({&item, 1}));
  OUTRIDER_RETURN_IF_ERROR(commit(0, kRootOnly));
  const std::size_t seen = static_cast<std::size_t>(length(0));
  if (seen == 0 || seen > 2) return internal_error("a rollback leaves nothing of a text");
  OUTRIDER_RETURN_IF_ERROR(evaluate_one(std::span(text).subspan(seen, 2 - seen), text[2],
                                        /*keep=*/true, &got));
  return check_same(wanted, got);
}

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
