#include "draft/translated/translated_model.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "base/types.h"

namespace outrider {
namespace {

std::size_t common_beginning(std::span<const Token> a, std::span<const Token> b) {
  const std::size_t n = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin()).first -
      a.begin());
}

Capabilities over(const Capabilities& draft, std::int32_t n_vocab) {
  Capabilities capabilities = draft;
  capabilities.n_vocab = n_vocab;
  return capabilities;
}

}  // namespace

TranslatedModel::TranslatedModel(LanguageModel& draft, const VocabularyMap& map, std::size_t window)
    : model_(draft), map_(map), capabilities_(over(draft.capabilities(), map.target_size())) {
  for (SeqId seq = 0; seq < capabilities_.n_sequences; ++seq) states_.emplace_back(map, window);
}

// Makes the translation that of the committed text, `prefix` and the tree's root.
Status TranslatedModel::translate(State& s, std::span<const Token> prefix, const TokenTree* tree) {
  std::vector<Token> more(s.text.begin() + static_cast<std::ptrdiff_t>(s.n_agreed), s.text.end());
  more.insert(more.end(), prefix.begin(), prefix.end());
  if (tree != nullptr) more.push_back(tree->token(kRoot));
  const Status status = s.translation.set(s.n_agreed, more);
  s.n_agreed = status.ok() ? s.text.size() : 0;
  return status;
}

bool TranslatedModel::has_room_for(SeqId seq, std::span<const Token> more) {
  State& s = state(seq);
  // What cannot be translated fails later, with its reason.
  if (!translate(s, more, nullptr).ok()) return true;
  const std::int64_t wanted = static_cast<std::int64_t>(s.translation.tokens().size());
  return wanted <= model_.room(seq) + static_cast<std::int64_t>(s.held.size());
}

Status TranslatedModel::check_item(const EvalItem& item) const {
  const auto in_range = [this](Token t) { return t >= 0 && t < capabilities_.n_vocab; };
  const auto refuse = [this](Token t) {
    return invalid_argument("token " + std::to_string(t) + " is outside the target's " +
                            std::to_string(capabilities_.n_vocab) + " tokens");
  };
  for (const Token t : item.prefix) {
    if (!in_range(t)) return refuse(t);
  }
  assert(state(item.seq).waits == (item.first_new > 0));
  if (item.tree == nullptr) return Status();
  for (NodeId id = 0; id < item.tree->size(); ++id) {
    const Token t = item.tree->token(id);
    if (!in_range(t)) return refuse(t);
    if (id != kRoot && map_.to_draft(t) == kNoToken) {
      return invalid_argument("token " + std::to_string(t) +
                              " is in a tree, but the draft model has no such token");
    }
  }
  if (static_cast<std::int32_t>(item.tree->leaves().size()) > capabilities_.max_leaves ||
      item.tree->size() > capabilities_.max_width) {
    return invalid_argument("a tree is wider than the draft model allows");
  }
  return item.first_new > 0 ? check_grown(item) : Status();
}

Status TranslatedModel::check_grown(const EvalItem& item) const {
  const State& s = state(item.seq);
  const bool same_size = !s.trees.empty() && item.first_new == s.trees[0].size();
  bool same = same_size && item.first_new < item.tree->size();
  for (NodeId id = 0; same && id < item.first_new; ++id) {
    same = item.tree->token(id) == s.trees[0].token(id) &&
           item.tree->node(id).parent == s.trees[0].node(id).parent;
  }
  return same ? Status() : invalid_argument("the tentative tree is another one, or nothing is new");
}

// Keeps the first `keep` tokens of what the draft model holds.
Status TranslatedModel::drop(SeqId seq, std::size_t keep) {
  State& s = state(seq);
  if (keep >= s.held.size()) return Status();
  const Status status = model_.truncate(seq, static_cast<Pos>(keep));
  s.held.resize(static_cast<std::size_t>(model_.length(seq)));
  return status;
}

// Makes the draft model hold a beginning of `wanted` that is at most `most_left` tokens short.
Status TranslatedModel::catch_up(SeqId seq, std::span<const Token> wanted, std::size_t most_left) {
  State& s = state(seq);
  OUTRIDER_RETURN_IF_ERROR(drop(seq, common_beginning(s.held, wanted)));
  const std::size_t n_batch = static_cast<std::size_t>(capabilities_.n_batch);
  while (wanted.size() - s.held.size() > most_left) {
    const std::size_t n = std::min(n_batch, wanted.size() - s.held.size());
    const std::span<const Token> next = wanted.subspan(s.held.size(), n);
    const std::array<EvalItem, 1> item = {EvalItem{.seq = seq, .prefix = next, .tree = nullptr}};
    OUTRIDER_RETURN_IF_ERROR(model_.evaluate(item));
    const Status committed = model_.commit(seq, {});
    if (committed.ok()) s.held.insert(s.held.end(), next.begin(), next.end());
    s.held.resize(static_cast<std::size_t>(model_.length(seq)));
    OUTRIDER_RETURN_IF_ERROR(committed);
  }
  return Status();
}

// Brings the draft model to the text of an item with a new tree, or with none.
Status TranslatedModel::prepare(const EvalItem& item, std::size_t most_left) {
  State& s = state(item.seq);
  OUTRIDER_RETURN_IF_ERROR(translate(s, item.prefix, item.tree));
  std::span<const Token> wanted = s.translation.tokens();
  if (item.tree == nullptr) return catch_up(item.seq, wanted, 0);
  wanted = wanted.first(wanted.size() - 1);  // the last one is the tree's root
  return catch_up(item.seq, wanted, most_left);
}

// The nodes from first_new on, as the draft's tokens.
void TranslatedModel::add_nodes(const EvalItem& item, TokenTree& own) const {
  for (NodeId id = std::max<NodeId>(item.first_new, 1); id < item.tree->size(); ++id) {
    const TokenTree::Node& node = item.tree->node(id);
    [[maybe_unused]] const NodeId added =
        own.add(node.parent, map_.to_draft(node.token), node.chance, node.proposed_by);
    assert(added == id);  // the map is one to one
  }
}

Status TranslatedModel::evaluate(std::span<const EvalItem> items) {
  if (capabilities_.rollback != Rollback::kAny) {
    return unsupported("a draft model with another vocabulary must be able to forget any token: " +
                       capabilities_.rollback_reason);
  }
  std::int32_t n_nodes = 0;
  for (const EvalItem& item : items) {
    OUTRIDER_RETURN_IF_ERROR(check_item(item));
    if (item.tree != nullptr) n_nodes += item.tree->size() - item.first_new;
  }
  if (n_nodes > capabilities_.n_batch) return invalid_argument("the batch is too large");
  const std::size_t most_left = static_cast<std::size_t>(capabilities_.n_batch - n_nodes) /
                                std::max<std::size_t>(1, items.size());
  for (const EvalItem& item : items) {
    if (item.first_new == 0) OUTRIDER_RETURN_IF_ERROR(prepare(item, most_left));
  }
  std::vector<EvalItem> own_items;
  std::vector<TokenTree> own_trees;
  own_trees.reserve(items.size());
  std::vector<std::size_t> own_index;  // [items] in own_items
  for (const EvalItem& item : items) {
    own_index.push_back(own_items.size());
    if (item.tree == nullptr) continue;
    const State& s = state(item.seq);
    const std::span<const Token> tokens = s.translation.tokens();
    own_trees.push_back(item.first_new > 0 ? s.own[0] : TokenTree(tokens.back()));
    add_nodes(item, own_trees.back());
    EvalItem own{
        .seq = item.seq, .prefix = {}, .tree = &own_trees.back(), .first_new = item.first_new};
    if (item.first_new == 0) {
      own.prefix = tokens.subspan(s.held.size(), tokens.size() - 1 - s.held.size());
    }
    own_items.push_back(own);
  }
  if (!own_items.empty()) OUTRIDER_RETURN_IF_ERROR(model_.evaluate(own_items));
  for (std::size_t i = 0; i < items.size(); ++i) {
    State& s = state(items[i].seq);
    s.waits = true;
    if (items[i].first_new == 0) {
      s.prefix.assign(items[i].prefix.begin(), items[i].prefix.end());
      s.trees.clear();
      s.own.clear();
      s.read.clear();
    }
    if (items[i].tree == nullptr) continue;
    const EvalItem& own = own_items[own_index[i]];
    if (items[i].first_new == 0) s.read.assign(own.prefix.begin(), own.prefix.end());
    s.trees.assign(1, *items[i].tree);
    s.own.assign(1, *own.tree);
  }
  take_rows(items, own_index);
  return Status();
}

void TranslatedModel::take_rows(std::span<const EvalItem> items,
                                std::span<const std::size_t> own_index) {
  items_.clear();
  std::size_t n = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    items_.push_back({.first = n, .first_new = items[i].first_new});
    const NodeId end = items[i].tree == nullptr ? 0 : items[i].tree->size();
    for (NodeId node = items[i].first_new; node < end; ++node, ++n) {
      if (rows_.size() == n) {
        rows_.emplace_back(static_cast<std::size_t>(capabilities_.n_vocab), kRuledOut);
      }
      const float* from = model_.logits(own_index[i], node).data();
      float* to = rows_[n].data();
      for (const VocabularyMap::Pair& pair : map_.pairs()) to[pair.target] = from[pair.draft];
    }
  }
}

std::span<const float> TranslatedModel::logits(std::size_t item, NodeId node) const {
  const Rows& rows = items_[item];
  return rows_[rows.first + static_cast<std::size_t>(node - rows.first_new)];
}

Status TranslatedModel::commit(SeqId seq, std::span<const NodeId> path) {
  State& s = state(seq);
  assert(s.waits);
  s.waits = false;
  if (!s.trees.empty()) {
    const Status status = model_.commit(seq, path);
    if (status.ok()) {
      s.held.insert(s.held.end(), s.read.begin(), s.read.end());
      for (const NodeId node : path) s.held.push_back(s.own[0].token(node));
    }
    s.held.resize(static_cast<std::size_t>(model_.length(seq)));
    OUTRIDER_RETURN_IF_ERROR(status);
  }
  // The translation had the prefix and the root already.
  const std::size_t n_known = s.text.size() + s.prefix.size() + (path.empty() ? 0 : 1);
  s.text.insert(s.text.end(), s.prefix.begin(), s.prefix.end());
  for (const NodeId node : path) s.text.push_back(s.trees[0].token(node));
  s.n_agreed = std::min({n_known, s.text.size(), s.translation.size()});
  return Status();
}

Status TranslatedModel::truncate(SeqId seq, Pos length) {
  State& s = state(seq);
  if (length == 0) {
    s.waits = false;
    s.text.clear();
    s.n_agreed = 0;
    const Status status = model_.truncate(seq, 0);
    s.held.resize(static_cast<std::size_t>(model_.length(seq)));
    return status;
  }
  assert(!s.waits);
  s.text.resize(static_cast<std::size_t>(length));
  s.n_agreed = std::min(s.n_agreed, s.text.size());
  // What cannot be translated now is read again later.
  const bool translated = translate(s, {}, nullptr).ok();
  return drop(seq, translated ? common_beginning(s.held, s.translation.tokens()) : 0);
}

// The draft model shares all that it holds, and then gives up what the shorter text is not.
Status TranslatedModel::share(SeqId from, SeqId to, Pos length) {
  assert(from != to && length >= 0 && length <= this->length(from));
  OUTRIDER_RETURN_IF_ERROR(truncate(to, 0));
  OUTRIDER_RETURN_IF_ERROR(model_.share(from, to, model_.length(from)));
  const State& source = state(from);
  State& s = state(to);
  s.held = source.held;
  s.text.assign(source.text.begin(), source.text.begin() + length);
  const bool translated = translate(s, {}, nullptr).ok();
  const Status status = drop(to, translated ? common_beginning(s.held, s.translation.tokens()) : 0);
  if (!status.ok()) static_cast<void>(truncate(to, 0));
  return status;
}

std::string TranslatedModel::check_integrity() const {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const State& s = states_[i];
    const std::string where = "sequence " + std::to_string(i) + ": ";
    const std::size_t length = static_cast<std::size_t>(model_.length(static_cast<SeqId>(i)));
    if (length != s.held.size()) {
      return where + "the draft model holds " + std::to_string(length) + " tokens, not " +
             std::to_string(s.held.size());
    }
    const std::string problem = s.translation.check_integrity();
    if (!problem.empty()) return where + problem;
    if (s.n_agreed > s.text.size() || s.n_agreed > s.translation.size()) {
      return where + "more tokens agree than there are";
    }
  }
  return "";
}

}  // namespace outrider
