#include "draft/draft_model.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "dist/gumbel.h"

namespace outrider {
namespace {

// The chance that one more drafted token is accepted, before anything was learned about a pair: a
// Q3_K_S draft of its own Q4_1 model gave 0.67 at temperature 1 and 0.72 at 0.7.
constexpr float kPriorAcceptance = 0.7f;

}  // namespace

DraftModelDrafter::DraftModelDrafter(LanguageModel& model, std::int32_t n_target_vocab,
                                     std::function<bool(Token)> is_end)
    : model_(model),
      n_target_vocab_(std::min(n_target_vocab, model.capabilities().n_vocab)),
      is_end_(std::move(is_end)),
      sequences_(static_cast<std::size_t>(model.capabilities().n_sequences)) {}

Status DraftModelDrafter::begin(SeqId seq) {
  sequences_[static_cast<std::size_t>(seq)] = SeqState();
  return model_.truncate(seq, 0);
}

void DraftModelDrafter::accept(SeqId seq, std::span<const Token> text) {
  SeqState& state = sequences_[static_cast<std::size_t>(seq)];
  const std::size_t limit = std::min(state.seen.size(), text.size());
  while (state.agreed < limit && state.seen[state.agreed] == text[state.agreed]) ++state.agreed;
}

void DraftModelDrafter::end(SeqId seq) { (void)begin(seq); }

std::string DraftModelDrafter::limit_reason(SeqId seq) const {
  return sequences_[static_cast<std::size_t>(seq)].limit_reason;
}

Status DraftModelDrafter::draft(std::span<DraftRequest> requests) {
  std::vector<Growing> growing;
  Status failure;
  for (DraftRequest& request : requests) {
    if (request.max_nodes <= 0) continue;
    std::size_t start = 0;
    const Status ready = synchronise(request, start);
    if (ready.code() == StatusCode::kCancelled) return ready;
    SeqState& state = sequences_[static_cast<std::size_t>(request.seq)];
    if (!ready.ok()) {
      state.limit_reason = ready.message();
      if (ready.code() != StatusCode::kResourceExhausted) failure = ready;
      continue;
    }
    const std::size_t last = request.text.size() - 1;
    growing.push_back({.request = &request,
                       .tip = kRoot,
                       .chain = request.sampler->has_state() ? request.sampler->clone() : nullptr,
                       .input = TokenTree(request.text[last]),
                       .prefix = request.text.subspan(start, last - start),
                       .left = request.max_nodes});
  }
  while (!growing.empty()) OUTRIDER_RETURN_IF_ERROR(extend(growing));
  return failure;
}

// Makes the model's state a prefix of the text, at least one token short of it, close enough for one
// batch. `start`: how many tokens of the text it then holds.
Status DraftModelDrafter::synchronise(const DraftRequest& request, std::size_t& start) {
  assert(!request.text.empty());
  accept(request.seq, request.text);
  SeqState& state = sequences_[static_cast<std::size_t>(request.seq)];
  start = std::min(state.agreed, request.text.size() - 1);
  if (start < state.seen.size()) {
    OUTRIDER_RETURN_IF_ERROR(model_.truncate(request.seq, static_cast<Pos>(start)));
    state.seen.resize(start);
    state.agreed = std::min(state.agreed, start);
  }
  const std::size_t missing = request.text.size() - start;
  if (missing > static_cast<std::size_t>(model_.room(request.seq))) {
    return resource_exhausted("the draft model's context of " +
                              std::to_string(model_.capabilities().n_ctx) +
                              " tokens is full; a larger --draft-ctx drafts for longer");
  }
  return catch_up(request, start);
}

// Evaluates what is missing in whole batches until the rest fits one batch beside other sequences.
Status DraftModelDrafter::catch_up(const DraftRequest& request, std::size_t& start) {
  SeqState& state = sequences_[static_cast<std::size_t>(request.seq)];
  const Capabilities& caps = model_.capabilities();
  const std::size_t share =
      static_cast<std::size_t>(std::max(1, caps.n_batch / std::max(1, caps.n_sequences)));
  while (request.text.size() - start > share) {
    const std::size_t n = std::min(static_cast<std::size_t>(caps.n_batch),
                                   request.text.size() - start - 1);
    const std::array<EvalItem, 1> item = {
        EvalItem{.seq = request.seq, .prefix = request.text.subspan(start, n), .tree = nullptr}};
    OUTRIDER_RETURN_IF_ERROR(model_.evaluate(item));
    OUTRIDER_RETURN_IF_ERROR(model_.commit(request.seq, {}));
    const std::span<const Token> done = request.text.subspan(start, n);
    state.seen.insert(state.seen.end(), done.begin(), done.end());
    start += n;
    state.agreed = start;
  }
  return Status();
}

// One more token for each growing request, in one pass of the model; drops those that are done.
Status DraftModelDrafter::extend(std::vector<Growing>& growing) {
  std::vector<EvalItem> items;
  for (const Growing& g : growing) {
    items.push_back({.seq = g.request->seq, .prefix = g.prefix, .tree = &g.input});
  }
  OUTRIDER_RETURN_IF_ERROR(model_.evaluate(items));

  std::vector<Growing> next;
  Status failure;
  for (std::size_t i = 0; i < growing.size(); ++i) {
    Growing& g = growing[i];
    SeqState& state = sequences_[static_cast<std::size_t>(g.request->seq)];
    const bool goes_on = choose(g, i);
    const NodeId path[] = {kRoot};
    const Status committed = model_.commit(g.request->seq, path);
    if (!committed.ok()) {
      failure = committed;
      continue;
    }
    state.seen.insert(state.seen.end(), g.prefix.begin(), g.prefix.end());
    state.seen.push_back(g.input.token(kRoot));
    if (!goes_on || model_.room(g.request->seq) < 1) continue;
    g.prefix = {};
    g.input = TokenTree(g.request->tree->token(g.tip));
    next.push_back(std::move(g));
  }
  growing = std::move(next);
  return failure;
}

// Adds the token that the logits of item `index` choose. False when the chain ends here.
bool DraftModelDrafter::choose(Growing& item, std::size_t index) {
  const DraftRequest& request = *item.request;
  TokenTree& tree = *request.tree;
  Sampler& chain = item.chain ? *item.chain : *request.sampler;
  const std::span<const float> row =
      model_.logits(index, kRoot).first(static_cast<std::size_t>(n_target_vocab_));
  const std::size_t position =
      request.text.size() + static_cast<std::size_t>(tree.node(item.tip).depth);
  const Token token = perturbed_argmax(chain.apply(row), noise_key(request.seed, position));
  if (token == kNoToken) return false;
  item.tip = tree.add(item.tip, token, tree.node(item.tip).chance * kPriorAcceptance, request.mask);
  --item.left;
  if (item.chain) item.chain->accept(token);
  return item.left > 0 && !(is_end_ && is_end_(token));
}

std::string DraftModelDrafter::check_integrity() const {
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    const SeqState& state = sequences_[i];
    const Pos length = model_.length(static_cast<SeqId>(i));
    if (static_cast<std::size_t>(length) != state.seen.size()) {
      return "sequence " + std::to_string(i) + ": the model holds " + std::to_string(length) +
             " tokens, the drafter believes " + std::to_string(state.seen.size());
    }
    if (state.agreed > state.seen.size()) {
      return "sequence " + std::to_string(i) + ": more tokens agreed than seen";
    }
  }
  return "";
}

}  // namespace outrider
