#include "draft/model/draft_model.h"

#include <algorithm>
#include <cassert>

#include "draft/model/draft_growth.h"

namespace outrider {

// A request while its draft grows.
struct DraftModelDrafter::Growing {
  DraftGrowth growth;
  std::span<const Token> prefix;  // decided tokens before the root, in the first pass
  std::vector<float> hidden;      // EvalItem::hidden of the pass, of a head
};

DraftModelDrafter::DraftModelDrafter(LanguageModel& model, std::int32_t n_target_vocab,
                                     std::function<bool(Token)> is_end, bool learns,
                                     std::optional<HeadOptions> head)
    : model_(model),
      n_target_vocab_(std::min(n_target_vocab, model.capabilities().n_vocab)),
      is_end_(std::move(is_end)),
      learns_(learns),
      head_(head),
      sequences_(static_cast<std::size_t>(model.capabilities().n_sequences)) {
  assert(head_.has_value() == (model.capabilities().n_hidden_in > 0));
  for (SeqId seq = 0; seq < model.capabilities().n_sequences; ++seq) clear_state(seq);
}

void DraftModelDrafter::clear_state(SeqId seq) {
  std::optional<HiddenRows> rows = std::move(state_of(seq).rows);
  state_of(seq) = SeqState();
  if (!head_) return;
  const std::size_t width = static_cast<std::size_t>(model_.capabilities().n_hidden_in);
  const std::size_t raw_width = static_cast<std::size_t>(model_.capabilities().n_encoded);
  state_of(seq).rows = rows ? std::move(rows) : HiddenRows(width, head_->window, raw_width);
}

// Of the text, as far as the model has it.
std::size_t DraftModelDrafter::seen_of(SeqId seq) const {
  return sequences_[static_cast<std::size_t>(seq)].start +
         static_cast<std::size_t>(model_.length(seq));
}

// A model that an exception left without its texts (LanguageModel, LostOnThrow of llama.cpp's)
// holds nothing of those that were none of the call's, either: they are read again.
void DraftModelDrafter::notice_loss(SeqId seq) {
  if (seen_of(seq) == state_of(seq).n_seen) return;
  (void)model_.truncate(seq, 0);
  clear_state(seq);
}

// Of the old text's last draft only the prefix is worth keeping: the tree is a few tokens.
Status DraftModelDrafter::begin(SeqId seq, std::size_t kept) {
  notice_loss(seq);
  SeqState& state = state_of(seq);
  Status status;
  if (kept > 0 && state.tentative) status = model_.commit(seq, {});
  const std::size_t start = state.start;
  const std::size_t seen = seen_of(seq);
  clear_state(seq);
  if (state.rows) state.rows->cut(kept);
  const std::size_t both = std::min(seen, status.ok() ? kept : 0);
  if (both > start) {
    state.start = start;
    state.n_seen = both;
    status = model_.truncate(seq, static_cast<Pos>(both - start));
    if (status.ok()) return status;
  }
  state.start = state.n_seen = 0;
  return model_.truncate(seq, 0);
}

Status DraftModelDrafter::begin_like(SeqId seq, SeqId from, std::size_t kept) {
  OUTRIDER_RETURN_IF_ERROR(begin(seq, 0));
  notice_loss(from);
  SeqState& source = state_of(from);
  SeqState& state = state_of(seq);
  if (source.rows) {
    state.rows = source.rows;
    state.rows->cut(kept);
  }
  if (!model_.capabilities().can_share) return Status();
  if (source.n_prefix > 0 && source.n_seen < kept) OUTRIDER_RETURN_IF_ERROR(keep_prefix(from));
  const std::size_t n = std::min(kept, source.n_seen);
  // A text that cannot be shared is read.
  if (n <= source.start) return Status();
  if (!model_.share(from, seq, static_cast<Pos>(n - source.start)).ok()) return Status();
  state.start = source.start;
  state.n_seen = n;
  return Status();
}

// Of what is tentative, only the decided tokens in front of the tree stay.
Status DraftModelDrafter::keep_prefix(SeqId seq) {
  notice_loss(seq);
  SeqState& state = sequences_[static_cast<std::size_t>(seq)];
  if (!state.tentative) return Status();
  const Status status = model_.commit(seq, {});
  forget_tentative(seq);
  state.n_seen = seen_of(seq);
  return status;
}

Result<std::vector<std::uint8_t>> DraftModelDrafter::save(SeqId seq, std::size_t* n_tokens) {
  *n_tokens = 0;
  if (head_) return unsupported("a head's state is not kept");
  OUTRIDER_RETURN_IF_ERROR(keep_prefix(seq));
  Result<std::vector<std::uint8_t>> bytes = model_.save(seq);
  if (bytes.ok()) *n_tokens = sequences_[static_cast<std::size_t>(seq)].n_seen;
  return bytes;
}

Status DraftModelDrafter::restore(SeqId seq, std::span<const std::uint8_t> bytes,
                                  std::size_t n_tokens) {
  if (head_) return unsupported("a head's state is not kept");
  OUTRIDER_RETURN_IF_ERROR(begin(seq, 0));
  OUTRIDER_RETURN_IF_ERROR(model_.restore(seq, bytes, static_cast<Pos>(n_tokens)));
  sequences_[static_cast<std::size_t>(seq)].n_seen = n_tokens;
  return Status();
}

// While the text goes on along the last draft, finding out what was right can wait until the next
// one. Behind that the tree only keeps the model from rebuilding its cache (LanguageModel::room).
void DraftModelDrafter::accept(SeqId seq, std::span<const Token> text) {
  if (has_left_tree(state_of(seq), text)) (void)settle(seq, text);
}

void DraftModelDrafter::rest(SeqId seq, std::span<const Token> text) { (void)settle(seq, text); }

void DraftModelDrafter::end(SeqId seq) { (void)begin(seq, 0); }

// What the next draft will keep: see settle(). Where it reads a window only, what lies before that
// need not be read.
std::int64_t DraftModelDrafter::known(SeqId seq, std::span<const Token> text) const {
  const SeqState& state = sequences_[static_cast<std::size_t>(seq)];
  std::size_t n = state.n_seen;
  if (state.tentative) n += state.n_prefix + kept_of(path_of(state, text)).size();
  if (head_ && !continues(state, n)) n = window_start(*state.rows);
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

bool DraftModelDrafter::wants_draft(const DraftRequest& request) const {
  return request.max_nodes > 0 && can_guess(request.seq, request.text);
}

Status DraftModelDrafter::check_rollback() const {
  if (model_.capabilities().rollback == Rollback::kAny) return Status();
  return unsupported("it cannot take back what was drafted: " +
                     model_.capabilities().rollback_reason);
}

Status DraftModelDrafter::draft(std::span<DraftRequest> requests) {
  OUTRIDER_RETURN_IF_ERROR(check_rollback());
  std::vector<SeqId> asked;
  for (const DraftRequest& request : requests) {
    if (wants_draft(request)) asked.push_back(request.seq);
  }
  OUTRIDER_RETURN_IF_ERROR(encode_rows(asked));
  settle_all(requests);
  std::vector<Growing> growing;
  for (DraftRequest& request : requests) {
    if (!wants_draft(request) || !request.failure.ok()) continue;
    request.failure = check_tokens(request);
    if (!request.failure.ok()) continue;
    const Status ready = synchronise(request);
    if (ready.code() == StatusCode::kCancelled) {
      for (const Growing& g : growing) forget_tentative(g.growth.request().seq);
      return ready;
    }
    SeqState& state = sequences_[static_cast<std::size_t>(request.seq)];
    state.limit_reason = ready.message();
    if (!ready.ok()) {
      // A full context is a limit (limit_reason) and no failure.
      if (ready.code() != StatusCode::kResourceExhausted) request.failure = ready;
      continue;
    }
    const std::size_t last = request.text.size() - 1;
    state.states.clear();
    state.tentative.emplace(request.text[last]);
    state.rivals.clear();
    state.n_prefix = last - state.n_seen;
    growing.push_back({.growth = DraftGrowth(request, &*state.tentative, sharpness_.factor()),
                       .prefix = request.text.subspan(state.n_seen, state.n_prefix),
                       .hidden = {}});
  }
  while (!growing.empty()) OUTRIDER_RETURN_IF_ERROR(extend(growing));
  return Status();
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

// Of that path, what the model keeps. Behind the root a head has read states of its own.
std::span<const NodeId> DraftModelDrafter::kept_of(std::span<const NodeId> path) const {
  return head_ ? path.first(std::min<std::size_t>(path.size(), 1)) : path;
}

bool DraftModelDrafter::has_left_tree(const SeqState& state, std::span<const Token> text) {
  if (!state.tentative) return false;
  const std::vector<NodeId> path = path_of(state, text);
  const std::size_t next = state.n_seen + state.n_prefix + path.size();
  return !path.empty() && next < text.size() &&
         state.tentative->child(path.back(), text[next]) == kNoNode;
}

// Keeps the path of the last draft's tree that the text took, and forgets the rest.
Status DraftModelDrafter::settle(SeqId seq, std::span<const Token> text) {
  notice_loss(seq);
  SeqState& state = sequences_[static_cast<std::size_t>(seq)];
  if (!state.tentative) return Status();
  const std::vector<NodeId> path = path_of(state, text);
  const std::size_t behind_root = state.n_seen + state.n_prefix + 1;
  for (std::size_t i = 0; learns_ && i < path.size(); ++i) {
    const std::size_t node = static_cast<std::size_t>(path[i]);
    if (node < state.rivals.size()) sharpness_.learn(state.rivals[node], text[behind_root + i]);
  }
  const Status status = model_.commit(seq, kept_of(path));
  state.tentative.reset();
  state.n_prefix = 0;
  state.n_seen = seen_of(seq);
  return status;
}

// Ends the last drafts of all requests before the first one is made ready. Where one finds no room
// then, those of the other sequences, too: the cache is rebuilt only where nothing is tentative.
void DraftModelDrafter::settle_all(std::span<DraftRequest> requests) {
  for (DraftRequest& request : requests) {
    if (wants_draft(request)) request.failure = settle(request.seq, request.text);
  }
  const bool all_fit = std::all_of(
      requests.begin(), requests.end(),
      [this](const DraftRequest& request) { return !wants_draft(request) || fits(request); });
  for (SeqId seq = 0; !all_fit && seq < std::ssize(sequences_); ++seq) {
    (void)keep_prefix(seq);
  }
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
    if (head_) add_hidden(g);
    running.push_back(std::move(g));
  }
  growing.clear();
  if (running.empty()) return Status();
  for (const Growing& g : running) {
    items.push_back({.seq = g.growth.request().seq,
                     .prefix = g.prefix,
                     .tree = &g.growth.tentative(),
                     .first_new = g.growth.first_new(),
                     .hidden = g.hidden});
  }
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
  for (std::size_t i = 0; i < running.size(); ++i) take_rows(i, running[i]);
  growing = std::move(running);
  return Status();
}

// What the pass says behind the item's nodes.
void DraftModelDrafter::take_rows(std::size_t item, Growing& g) {
  DraftGrowth& growth = g.growth;
  SeqState& state = state_of(growth.request().seq);
  std::size_t token = g.prefix.size();
  for (NodeId node = growth.first_new(); node < growth.tentative().size(); ++node, ++token) {
    const std::span<const float> row = model_.logits(item, node);
    state.rivals.push_back(
        growth.take_row(node, row.first(static_cast<std::size_t>(n_target_vocab_)), is_end_));
    if (!head_) continue;
    const std::span<const float> own = model_.hidden(item, token);
    state.states.insert(state.states.end(), own.begin(), own.end());
  }
  g.prefix = {};
}

// The states that the tokens of a head's next pass come with.
void DraftModelDrafter::add_hidden(Growing& g) const {
  const SeqState& state = sequences_[static_cast<std::size_t>(g.growth.request().seq)];
  g.hidden.clear();
  if (g.growth.first_new() == 0) {
    state.rows->append_before(state.n_seen, g.prefix.size() + 1, &g.hidden);
    return;
  }
  const std::size_t width = static_cast<std::size_t>(model_.capabilities().n_hidden_in);
  for (NodeId node = g.growth.first_new(); node < g.growth.tentative().size(); ++node) {
    const std::size_t parent = static_cast<std::size_t>(g.growth.tentative().node(node).parent);
    const float* const own = &state.states[parent * width];
    g.hidden.insert(g.hidden.end(), own, own + width);
  }
}

std::string DraftModelDrafter::check_integrity() const {
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    const SeqState& state = sequences_[i];
    const Pos length = model_.length(static_cast<SeqId>(i));
    if (state.start + static_cast<std::size_t>(length) != state.n_seen) {
      return "sequence " + std::to_string(i) + ": the model holds " + std::to_string(length) +
             " tokens, the drafter believes " + std::to_string(state.n_seen - state.start);
    }
    const std::string wrong = state.tentative ? state.tentative->check_integrity() : "";
    if (!wrong.empty()) return "sequence " + std::to_string(i) + ": tentative tree: " + wrong;
  }
  return "";
}

}  // namespace outrider
