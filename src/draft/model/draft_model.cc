#include "draft/model/draft_model.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "draft/model/draft_growth.h"

namespace outrider {

// A request while its draft grows.
struct DraftModelDrafter::Growing {
  DraftGrowth growth;
  std::span<const Token> prefix;  // decided tokens before the root, in the first pass
};

DraftModelDrafter::DraftModelDrafter(LanguageModel& model, std::int32_t n_target_vocab,
                                     std::function<bool(Token)> is_end, bool learns)
    : model_(model),
      n_target_vocab_(std::min(n_target_vocab, model.capabilities().n_vocab)),
      is_end_(std::move(is_end)),
      learns_(learns),
      sequences_(static_cast<std::size_t>(model.capabilities().n_sequences)) {}

// Of the old text's last draft only the prefix is worth keeping: the tree is a few tokens.
Status DraftModelDrafter::begin(SeqId seq, std::size_t kept) {
  SeqState& state = sequences_[static_cast<std::size_t>(seq)];
  Status status;
  if (kept > 0 && state.tentative) status = model_.commit(seq, {});
  state = SeqState();
  const std::size_t seen = static_cast<std::size_t>(model_.length(seq));
  state.n_seen = std::min(seen, status.ok() ? kept : 0);
  if (state.n_seen > 0) status = model_.truncate(seq, static_cast<Pos>(state.n_seen));
  if (state.n_seen > 0 && status.ok()) return status;
  state.n_seen = 0;
  return model_.truncate(seq, 0);
}

Status DraftModelDrafter::begin_like(SeqId seq, SeqId from, std::size_t kept) {
  OUTRIDER_RETURN_IF_ERROR(begin(seq, 0));
  if (!model_.capabilities().can_share) return Status();
  SeqState& source = sequences_[static_cast<std::size_t>(from)];
  if (source.n_prefix > 0 && source.n_seen < kept) OUTRIDER_RETURN_IF_ERROR(keep_prefix(from));
  const std::size_t n = std::min(kept, source.n_seen);
  // A text that cannot be shared is read.
  if (n == 0 || !model_.share(from, seq, static_cast<Pos>(n)).ok()) return Status();
  sequences_[static_cast<std::size_t>(seq)].n_seen = n;
  return Status();
}

// Of what is tentative, only the decided tokens in front of the tree stay.
Status DraftModelDrafter::keep_prefix(SeqId seq) {
  SeqState& state = sequences_[static_cast<std::size_t>(seq)];
  if (!state.tentative) return Status();
  const Status status = model_.commit(seq, {});
  forget_tentative(seq);
  state.n_seen = static_cast<std::size_t>(model_.length(seq));
  return status;
}

Result<std::vector<std::uint8_t>> DraftModelDrafter::save(SeqId seq, std::size_t* n_tokens) {
  *n_tokens = 0;
  OUTRIDER_RETURN_IF_ERROR(keep_prefix(seq));
  Result<std::vector<std::uint8_t>> bytes = model_.save(seq);
  if (bytes.ok()) *n_tokens = sequences_[static_cast<std::size_t>(seq)].n_seen;
  return bytes;
}

Status DraftModelDrafter::restore(SeqId seq, std::span<const std::uint8_t> bytes,
                                  std::size_t n_tokens) {
  OUTRIDER_RETURN_IF_ERROR(begin(seq, 0));
  OUTRIDER_RETURN_IF_ERROR(model_.restore(seq, bytes, static_cast<Pos>(n_tokens)));
  sequences_[static_cast<std::size_t>(seq)].n_seen = n_tokens;
  return Status();
}

// Finding out what was right can wait until the next draft.
void DraftModelDrafter::accept(SeqId /*seq*/, std::span<const Token> /*text*/) {}

void DraftModelDrafter::end(SeqId seq) { (void)begin(seq, 0); }

// What the next draft will keep: see settle().
std::int64_t DraftModelDrafter::known(SeqId seq, std::span<const Token> text) const {
  const SeqState& state = sequences_[static_cast<std::size_t>(seq)];
  std::size_t n = state.n_seen;
  if (state.tentative) n += state.n_prefix + path_of(state, text).size();
  return static_cast<std::int64_t>(n);
}

std::string DraftModelDrafter::limit_reason(SeqId seq) const {
  return sequences_[static_cast<std::size_t>(seq)].limit_reason;
}

// Tokens of one pass that each sequence may count on.
std::int32_t DraftModelDrafter::share() const {
  const Capabilities& caps = model_.capabilities();
  return std::max(1, caps.n_batch / std::max(1, caps.n_sequences));
}

Status DraftModelDrafter::draft(std::span<DraftRequest> requests) {
  if (model_.capabilities().rollback != Rollback::kAny) {
    return unsupported("it cannot take back what was drafted: " +
                       model_.capabilities().rollback_reason);
  }
  std::vector<Growing> growing;
  Status failure;
  for (DraftRequest& request : requests) {
    if (request.max_nodes <= 0) continue;
    const Status ready = synchronise(request);
    if (ready.code() == StatusCode::kCancelled) {
      for (const Growing& g : growing) forget_tentative(g.growth.request().seq);
      return ready;
    }
    SeqState& state = sequences_[static_cast<std::size_t>(request.seq)];
    if (!ready.ok()) {
      state.limit_reason = ready.message();
      if (ready.code() != StatusCode::kResourceExhausted) failure = ready;
      continue;
    }
    const std::size_t last = request.text.size() - 1;
    state.tentative.emplace(request.text[last]);
    state.rivals.clear();
    state.n_prefix = last - state.n_seen;
    growing.push_back({.growth = DraftGrowth(request, &*state.tentative, sharpness_.factor()),
                       .prefix = request.text.subspan(state.n_seen, state.n_prefix)});
  }
  while (!growing.empty()) OUTRIDER_RETURN_IF_ERROR(extend(growing));
  return failure;
}

// The tentative tree never got to the model.
void DraftModelDrafter::forget_tentative(SeqId seq) {
  SeqState& state = sequences_[static_cast<std::size_t>(seq)];
  state.tentative.reset();
  state.n_prefix = 0;
}

// The nodes of the last draft's tree that the text took, from its root on. The text's last token is
// the next root, which the model is to see then: it is left out.
std::vector<NodeId> DraftModelDrafter::path_of(const SeqState& state, std::span<const Token> text) {
  std::vector<NodeId> path;
  std::size_t at = state.n_seen + state.n_prefix;
  for (NodeId node = kRoot; node != kNoNode && at + 1 < text.size();) {
    path.push_back(node);
    ++at;
    node = state.tentative->child(node, text[at]);
  }
  return path;
}

// Keeps the path of the last draft's tree that the text took, and forgets the rest.
Status DraftModelDrafter::settle(SeqId seq, std::span<const Token> text) {
  SeqState& state = sequences_[static_cast<std::size_t>(seq)];
  if (!state.tentative) return Status();
  const std::vector<NodeId> path = path_of(state, text);
  const std::size_t behind_root = state.n_seen + state.n_prefix + 1;
  for (std::size_t i = 0; learns_ && i < path.size(); ++i) {
    const std::size_t node = static_cast<std::size_t>(path[i]);
    if (node < state.rivals.size()) sharpness_.learn(state.rivals[node], text[behind_root + i]);
  }
  const Status status = model_.commit(seq, path);
  state.tentative.reset();
  state.n_prefix = 0;
  state.n_seen = static_cast<std::size_t>(model_.length(seq));
  return status;
}

// Makes the model's state a beginning of the text, at least one token short of it, close enough for
// one batch.
Status DraftModelDrafter::synchronise(const DraftRequest& request) {
  assert(!request.text.empty());
  OUTRIDER_RETURN_IF_ERROR(settle(request.seq, request.text));
  const SeqState& state = sequences_[static_cast<std::size_t>(request.seq)];
  if (!model_.has_room_for(request.seq, request.text.subspan(state.n_seen))) {
    return resource_exhausted("the draft model's context of " +
                              std::to_string(model_.capabilities().n_ctx) +
                              " tokens is full; a larger one drafts for longer");
  }
  return catch_up(request);
}

// Evaluates what is missing in whole batches until the rest fits one batch beside other sequences.
Status DraftModelDrafter::catch_up(const DraftRequest& request) {
  SeqState& state = sequences_[static_cast<std::size_t>(request.seq)];
  const std::size_t n_batch = static_cast<std::size_t>(model_.capabilities().n_batch);
  while (request.text.size() - state.n_seen > static_cast<std::size_t>(share())) {
    const std::size_t n = std::min(n_batch, request.text.size() - state.n_seen - 1);
    const std::array<EvalItem, 1> item = {EvalItem{
        .seq = request.seq, .prefix = request.text.subspan(state.n_seen, n), .tree = nullptr}};
    OUTRIDER_RETURN_IF_ERROR(model_.evaluate(item));
    const Status committed = model_.commit(request.seq, {});
    state.n_seen = static_cast<std::size_t>(model_.length(request.seq));
    OUTRIDER_RETURN_IF_ERROR(committed);
  }
  return Status();
}

// One more level for each growing request, in one pass of the model; drops those that are done.
Status DraftModelDrafter::extend(std::vector<Growing>& growing) {
  const Capabilities& caps = model_.capabilities();
  std::vector<Growing> running;
  std::vector<EvalItem> items;
  for (Growing& g : growing) {
    const SeqId seq = g.growth.request().seq;
    const std::int32_t room = std::min(share(), model_.room(seq));
    if (g.growth.plan_pass(room, caps.max_leaves, caps.max_width) == 0) continue;
    items.push_back({.seq = seq,
                     .prefix = g.prefix,
                     .tree = &g.growth.tentative(),
                     .first_new = g.growth.first_new()});
    running.push_back(std::move(g));
  }
  growing.clear();
  if (items.empty()) return Status();
  const Status status = model_.evaluate(items);
  if (!status.ok()) {
    for (Growing& g : running) {
      if (g.growth.first_new() > 0) {
        g.growth.forget_pass();
      } else {
        forget_tentative(g.growth.request().seq);
      }
    }
    return status;
  }
  for (std::size_t i = 0; i < running.size(); ++i) {
    DraftGrowth& growth = running[i].growth;
    running[i].prefix = {};
    for (NodeId node = growth.first_new(); node < growth.tentative().size(); ++node) {
      const std::span<const float> row = model_.logits(i, node);
      sequences_[static_cast<std::size_t>(growth.request().seq)].rivals.push_back(
          growth.take_row(node, row.first(static_cast<std::size_t>(n_target_vocab_)), is_end_));
    }
  }
  growing = std::move(running);
  return Status();
}

std::string DraftModelDrafter::check_integrity() const {
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    const SeqState& state = sequences_[i];
    const Pos length = model_.length(static_cast<SeqId>(i));
    if (static_cast<std::size_t>(length) != state.n_seen) {
      return "sequence " + std::to_string(i) + ": the model holds " + std::to_string(length) +
             " tokens, the drafter believes " + std::to_string(state.n_seen);
    }
    const std::string wrong = state.tentative ? state.tentative->check_integrity() : "";
    if (!wrong.empty()) return "sequence " + std::to_string(i) + ": tentative tree: " + wrong;
  }
  return "";
}

}  // namespace outrider
