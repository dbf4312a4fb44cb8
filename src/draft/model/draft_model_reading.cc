// What the draft model's drafter reads of a text before it guesses: all that is missing, or a
// piece.
#include <algorithm>
#include <array>
#include <cassert>

#include "draft/model/draft_model.h"

namespace outrider {

// A head that has missed too much begins anew with a window, whatever is in its way now. One that
// still holds guesses had room for them a step ago, and drops them first.
bool DraftModelDrafter::has_room(SeqId seq, std::span<const Token> text) const {
  const SeqState& state = sequences_[static_cast<std::size_t>(seq)];
  if (state.tentative) return true;
  if (head_ && !continues(state, state.n_seen)) {
    const std::size_t n_ctx = static_cast<std::size_t>(model_.capabilities().n_ctx);
    return text.size() - window_start(*state.rows) <= n_ctx;
  }
  return model_.has_room_for(seq, text.subspan(std::min(state.n_seen, text.size())));
}

// The same once its last draft is settled.
bool DraftModelDrafter::fits(const DraftRequest& request) const {
  const SeqState& state = sequences_[static_cast<std::size_t>(request.seq)];
  return model_.has_room_for(request.seq, request.text.subspan(state.n_seen));
}

// Of what it has not seen: a target's vocabulary may have a few ids more than the draft's.
Status DraftModelDrafter::check_tokens(const DraftRequest& request) const {
  const std::size_t n_seen = sequences_[static_cast<std::size_t>(request.seq)].n_seen;
  for (std::size_t i = n_seen; i < request.text.size(); ++i) {
    if (request.text[i] < model_.capabilities().n_vocab) continue;
    return invalid_argument("the draft model does not know token " +
                            std::to_string(request.text[i]));
  }
  return Status();
}

// Makes the model's state a beginning of the text, at least one token short of it, behind which
// there is room for the rest. Its last draft is settled.
Status DraftModelDrafter::find_beginning(const DraftRequest& request) {
  assert(!request.text.empty());
  const std::size_t last = request.text.size() - 1;
  if (sequences_[static_cast<std::size_t>(request.seq)].n_seen > last) {
    OUTRIDER_RETURN_IF_ERROR(begin(request.seq, last));
  }
  if (head_) OUTRIDER_RETURN_IF_ERROR(reach_window(request));
  if (fits(request)) return Status();
  return resource_exhausted("the draft model's context of " +
                            std::to_string(model_.capabilities().n_ctx) +
                            " tokens is full; a larger one drafts for longer");
}

// That, and close enough to the text for one batch.
Status DraftModelDrafter::synchronise(const DraftRequest& request) {
  OUTRIDER_RETURN_IF_ERROR(find_beginning(request));
  return catch_up(request);
}

// Evaluates what is missing in whole batches until the rest fits one batch beside other sequences.
Status DraftModelDrafter::catch_up(const DraftRequest& request) {
  const SeqState& state = sequences_[static_cast<std::size_t>(request.seq)];
  while (request.text.size() - state.n_seen > static_cast<std::size_t>(share())) {
    OUTRIDER_RETURN_IF_ERROR(read_batch(request, request.text.size() - state.n_seen - 1));
  }
  return Status();
}

// The next `n` tokens, or as many as a batch takes.
Status DraftModelDrafter::read_batch(const DraftRequest& request, std::size_t n) {
  SeqState& state = sequences_[static_cast<std::size_t>(request.seq)];
  n = std::min(n, static_cast<std::size_t>(model_.capabilities().n_batch));
  std::vector<float> hidden;
  if (head_) state.rows->append_before(state.n_seen, n, &hidden);
  const std::array<EvalItem, 1> item = {EvalItem{.seq = request.seq,
                                                 .prefix = request.text.subspan(state.n_seen, n),
                                                 .tree = nullptr,
                                                 .hidden = hidden}};
  OUTRIDER_RETURN_IF_ERROR(model_.evaluate(item));
  const Status committed = model_.commit(request.seq, {});
  state.n_seen = seen_of(request.seq);
  return committed;
}

Status DraftModelDrafter::read(SeqId seq, std::span<const Token> text, std::int64_t n) {
  assert(reads_in_pieces() && n > 0);
  OUTRIDER_RETURN_IF_ERROR(check_rollback());
  DraftRequest request{.seq = seq, .text = text, .max_nodes = 1};
  settle_all(std::span(&request, 1));
  OUTRIDER_RETURN_IF_ERROR(request.failure);
  OUTRIDER_RETURN_IF_ERROR(check_tokens(request));
  SeqState& state = state_of(seq);
  Status status = find_beginning(request);
  const std::size_t end = std::min(state.n_seen + static_cast<std::size_t>(n), text.size() - 1);
  while (status.ok() && state.n_seen < end) status = read_batch(request, end - state.n_seen);
  if (status.code() == StatusCode::kCancelled) return status;
  state.limit_reason = status.message();
  return status.code() == StatusCode::kResourceExhausted ? Status() : status;
}

}  // namespace outrider
