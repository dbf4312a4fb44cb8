#include "llama/model/rollback_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

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
std::span<const float> RollbackCheck::no_states(std::size_t n_tokens) {
  no_states_.assign(n_tokens * static_cast<std::size_t>(capabilities_.n_hidden_in), 0.0f);
  return no_states_;
}

// One more token of sequence 0, behind a prefix, kept only when asked for.
Status RollbackCheck::evaluate_one(std::span<const Token> prefix, Token token, bool keep,
                                   std::vector<float>* row) {
  const TokenTree root(token);
  const EvalItem item{
      .seq = 0, .prefix = prefix, .tree = &root, .hidden = no_states(prefix.size() + 1)};
  OUTRIDER_RETURN_IF_ERROR(model_.evaluate({&item, 1}));
  const std::span<const float> logits = model_.logits(0, kRoot);
  if (row != nullptr) row->assign(logits.begin(), logits.end());
  return model_.commit(0, std::span<const NodeId>(kRootOnly).first(keep ? 1 : 0));
}

Status RollbackCheck::run() {
  if (has_state_) return check_state();
  capabilities_.can_share = facts_.n_swa == 0;
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
  return model_.truncate(0, 0);
}

void RollbackCheck::refuse_speculation(const std::string& reason) {
  capabilities_.rollback = Rollback::kNone;
  capabilities_.max_width = 1;
  capabilities_.rollback_reason = reason;
  refuse_branches(reason);
}

void RollbackCheck::refuse_branches(const std::string& reason) {
  capabilities_.max_leaves = 1;
  capabilities_.branches_reason = reason;
  capabilities_.can_share = false;  // both are cells that several ids read
}

// A branch behind another one must see its own path only. Sequence 0 holds one token.
Status RollbackCheck::check_branches() {
  if (model_.room(0) < 3) return Status();
  const Token last = capabilities_.n_vocab - 1;
  TokenTree tree(std::min(1, last));
  const NodeId side = tree.add(kRoot, 0, 1.0f, 1);
  const NodeId branch = tree.add(kRoot, last, 1.0f, 1);
  static_cast<void>(side);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &tree, .hidden = no_states(3)};
  OUTRIDER_RETURN_IF_ERROR(model_.evaluate({&item, 1}));
  const std::span<const float> logits = model_.logits(0, branch);
  const std::vector<float> got(logits.begin(), logits.end());
  OUTRIDER_RETURN_IF_ERROR(model_.commit(0, kRootOnly));
  std::vector<float> wanted;
  OUTRIDER_RETURN_IF_ERROR(evaluate_one({}, last, /*keep=*/false, &wanted));
  if (check_same(wanted, got).ok()) return Status();
  return internal_error("the logits of a branch are not those of its own path");
}

// Snapshots where there are any, else saved states, else nothing.
Status RollbackCheck::check_state() {
  const std::string what = "the " + facts_.architecture +
                           " architecture has recurrent layers, whose state cannot drop tokens";
  refuse_branches(what);
  OUTRIDER_RETURN_IF_ERROR(evaluate_one({}, 0, /*keep=*/true, nullptr));
  if (capabilities_.max_width < 2 || capabilities_.n_ctx < 4) {
    refuse_speculation(what + "; steps of one token need none of it");
    return model_.truncate(0, 0);
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
    if (status.ok()) return model_.truncate(0, 0);
    OUTRIDER_RETURN_IF_ERROR(model_.truncate(0, 0));
  }
  refuse_speculation(what + " (" + status.message() + ")");
  return model_.truncate(0, 0);
}

// A text in single steps, and the same text after a chain of which only the root was right.
Status RollbackCheck::try_state() {
  const Token last = capabilities_.n_vocab - 1;
  const std::array<Token, 3> text{0, std::min(1, last), std::min(2, last)};
  std::vector<float> wanted;
  std::vector<float> got;
  OUTRIDER_RETURN_IF_ERROR(model_.truncate(0, 0));
  for (const Token token : text) {
    OUTRIDER_RETURN_IF_ERROR(evaluate_one({}, token, /*keep=*/true, &wanted));
  }
  OUTRIDER_RETURN_IF_ERROR(model_.truncate(0, 0));
  OUTRIDER_RETURN_IF_ERROR(evaluate_one({}, text[0], /*keep=*/true, nullptr));
  TokenTree chain(text[1]);
  NodeId tip = kRoot;
  for (std::int32_t i = 1; i < std::min(3, capabilities_.max_width); ++i) {
    tip = chain.add(tip, last, 1.0f, 1);
  }
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &chain};
  OUTRIDER_RETURN_IF_ERROR(model_.evaluate({&item, 1}));
  OUTRIDER_RETURN_IF_ERROR(model_.commit(0, kRootOnly));
  const std::size_t seen = static_cast<std::size_t>(model_.length(0));
  if (seen == 0 || seen > 2) return internal_error("a rollback leaves nothing of a text");
  OUTRIDER_RETURN_IF_ERROR(evaluate_one(std::span(text).subspan(seen, 2 - seen), text[2],
                                        /*keep=*/true, &got));
  return check_same(wanted, got);
}

}  // namespace outrider::llama
