#include "draft/model/block_drafter.h"

#include <algorithm>
#include <cassert>

namespace outrider {

BlockDrafter::BlockDrafter(BlockModel& model, std::int32_t n_target_vocab,
                           std::function<bool(Token)> is_end, std::size_t window)
    : model_(model),
      n_vocab_(std::min(n_target_vocab, model.capabilities().n_vocab)),
      is_end_(std::move(is_end)) {
  const BlockCapabilities& caps = model.capabilities();
  const HiddenRows no_rows(static_cast<std::size_t>(caps.n_states), window);
  sequences_.assign(static_cast<std::size_t>(caps.n_sequences), SeqState(no_rows));
}

// The model holds no more than the first `length` tokens of the text from now on, and knows no
// states behind them.
Status BlockDrafter::cut(SeqId seq, std::size_t length) {
  SeqState& state = state_of(seq);
  state.last.reset();
  state.limit_reason.clear();
  state.rows.cut(length);
  const std::size_t both = std::min(state.n_seen, length);
  if (both > state.start) {
    state.n_seen = both;
    const Status status = model_.truncate(seq, static_cast<Pos>(both - state.start));
    if (status.ok()) return status;
  }
  state.start = state.n_seen = 0;
  return model_.truncate(seq, 0);
}

Status BlockDrafter::begin(SeqId seq, std::size_t kept) { return cut(seq, kept); }

void BlockDrafter::end(SeqId seq) { (void)cut(seq, 0); }

Status BlockDrafter::begin_like(SeqId seq, SeqId from, std::size_t kept) {
  OUTRIDER_RETURN_IF_ERROR(cut(seq, 0));
  const SeqState& source = state_of(from);
  SeqState& state = state_of(seq);
  state.rows = source.rows;
  state.rows.cut(kept);
  const std::size_t both = std::min(source.n_seen, kept);
  if (both <= source.start || !model_.capabilities().can_share) return Status();
  // What cannot be shared is read.
  if (!model_.share(from, seq, static_cast<Pos>(both - source.start)).ok()) return Status();
  state.start = source.start;
  state.n_seen = both;
  return Status();
}

// Finding out what was right can wait until the next draft.
void BlockDrafter::accept(SeqId /*seq*/, std::span<const Token> /*text*/) {}

void BlockDrafter::see_hidden(SeqId seq, std::size_t position, Token token,
                              std::span<const float> row) {
  state_of(seq).rows.see(position, token, row);
}

// Whether the states behind what the model holds are there.
bool BlockDrafter::goes_on(const SeqState& state) {
  return state.n_seen > state.start && state.rows.begin() <= state.n_seen;
}

bool BlockDrafter::can_guess(SeqId seq, std::span<const Token> text) const {
  const SeqState& state = state_of(seq);
  const bool knows = goes_on(state) || state.rows.end() > state.rows.begin() || text.size() == 1;
  return knows && state.rows.end() + 1 >= text.size() && state.rows.begin() < text.size();
}

std::int64_t BlockDrafter::known(SeqId seq, std::span<const Token> /*text*/) const {
  const SeqState& state = state_of(seq);
  return static_cast<std::int64_t>(goes_on(state) ? state.n_seen : state.rows.begin());
}

// Behind what it goes on from, or in the window with which it begins anew, room for a guess.
bool BlockDrafter::has_room(SeqId seq, std::span<const Token> text) const {
  const SeqState& state = state_of(seq);
  const std::size_t start = goes_on(state) ? state.start : state.rows.begin();
  return guesses_from(start, text) > 0;
}

std::string BlockDrafter::limit_reason(SeqId seq) const { return state_of(seq).limit_reason; }

// The nodes of the last draft that the text took.
void BlockDrafter::learn_from(SeqState& state, std::span<const Token> text) {
  if (!state.last) return;
  NodeId node = kRoot;
  for (std::size_t at = state.last_root + 1; node != kNoNode && at < text.size(); ++at) {
    sharpness_.learn(state.last->rivals[static_cast<std::size_t>(node)], text[at]);
    node = state.last->tree.child(node, text[at]);
  }
  state.last.reset();
}

// A head that has missed too much of the text begins anew with the last tokens of it.
Status BlockDrafter::reach_window(const DraftRequest& request) {
  SeqState& state = state_of(request.seq);
  const std::string wrong = state.rows.check_integrity(request.text);
  if (!wrong.empty()) return internal_error("its hidden states are not the text's: " + wrong);
  if (!goes_on(state)) {
    state.start = state.n_seen = state.rows.begin();
    OUTRIDER_RETURN_IF_ERROR(model_.truncate(request.seq, 0));
  }
  if (n_guesses(request) > 0) return Status();
  return resource_exhausted("the head's context of " + std::to_string(model_.capabilities().n_ctx) +
                            " tokens is full; a larger one drafts for longer");
}

// Depths of a block that fit the context behind the text from `start` on; may be less than 0.
std::int32_t BlockDrafter::guesses_from(std::size_t start, std::span<const Token> text) const {
  const BlockCapabilities& caps = model_.capabilities();
  const std::int64_t read = static_cast<std::int64_t>(text.size() - start);
  return static_cast<std::int32_t>(
      std::min<std::int64_t>({caps.most_guesses, caps.n_batch - 1, caps.n_ctx - read}));
}

// Those that are of use, too.
std::int32_t BlockDrafter::n_guesses(const DraftRequest& request) const {
  return std::min(request.max_nodes, guesses_from(state_of(request.seq).start, request.text));
}

// Those for which the model can guess; what is wrong with the others is noted in them.
std::vector<DraftRequest*> BlockDrafter::ready_ones(std::span<DraftRequest> requests) {
  std::vector<DraftRequest*> ready;
  for (DraftRequest& request : requests) {
    assert(!request.text.empty());
    if (request.max_nodes <= 0 || !can_guess(request.seq, request.text)) continue;
    SeqState& state = state_of(request.seq);
    learn_from(state, request.text);
    const Status status = reach_window(request);
    state.limit_reason = status.message();
    if (status.ok()) {
      ready.push_back(&request);
      continue;
    }
    // A full context is a limit (limit_reason) and no failure.
    if (status.code() != StatusCode::kResourceExhausted) request.failure = status;
  }
  return ready;
}

Status BlockDrafter::draft(std::span<DraftRequest> requests) {
  const std::vector<DraftRequest*> ready = ready_ones(requests);
  OUTRIDER_RETURN_IF_ERROR(read_all(ready));
  for (std::size_t first = 0, end = 0; first < ready.size(); first = end) {
    std::int32_t n_tokens = 0;
    while (end < ready.size()) {
      n_tokens += n_guesses(*ready[end]) + 1;
      if (n_tokens > model_.capabilities().n_batch) break;
      ++end;
    }
    OUTRIDER_RETURN_IF_ERROR(guess(std::span(ready).subspan(first, end - first)));
  }
  return Status();
}

// All that is missing, in as many passes as it takes.
Status BlockDrafter::read_all(std::span<DraftRequest* const> requests) {
  while (true) {
    std::vector<BlockText> items;
    std::vector<std::vector<float>> states;
    std::vector<std::size_t> counts;
    std::size_t room = static_cast<std::size_t>(model_.capabilities().n_batch);
    for (const DraftRequest* request : requests) {
      const SeqState& state = state_of(request->seq);
      const std::size_t n = std::min(room, request->text.size() - 1 - state.n_seen);
      if (n == 0) continue;
      room -= n;
      // Rows of the tokens themselves: of what comes before the ones behind them.
      state.rows.append_before(state.n_seen + 1, n, &states.emplace_back());
      items.push_back({.seq = request->seq, .states = states.back()});
      counts.push_back(n);
    }
    if (items.empty()) return Status();
    OUTRIDER_RETURN_IF_ERROR(model_.read(items));
    for (std::size_t i = 0; i < items.size(); ++i) state_of(items[i].seq).n_seen += counts[i];
  }
}

// For as many as fit one pass.
Status BlockDrafter::guess(std::span<DraftRequest* const> requests) {
  std::vector<BlockRoot> items;
  for (const DraftRequest* request : requests) {
    items.push_back(
        {.seq = request->seq, .root = request->text.back(), .n_guesses = n_guesses(*request)});
  }
  OUTRIDER_RETURN_IF_ERROR(model_.guess(items));
  const std::size_t n_vocab = static_cast<std::size_t>(n_vocab_);
  for (std::size_t i = 0; i < items.size(); ++i) {
    SeqState& state = state_of(items[i].seq);
    state.last_root = requests[i]->text.size() - 1;
    state.last = grow_block(
        *requests[i],
        {.n_depths = items[i].n_guesses,
         .row = [&](std::int32_t depth) { return model_.logits(i, depth).first(n_vocab); },
         .is_end = is_end_,
         .sharpness = sharpness_.factor()});
  }
  return Status();
}

std::string BlockDrafter::check_integrity() const {
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    const SeqState& state = sequences_[i];
    const Pos length = model_.length(static_cast<SeqId>(i));
    if (state.start + static_cast<std::size_t>(length) == state.n_seen) continue;
    return "sequence " + std::to_string(i) + ": the model holds " + std::to_string(length) +
           " tokens, the drafter believes " + std::to_string(state.n_seen - state.start);
  }
  return "";
}

}  // namespace outrider
