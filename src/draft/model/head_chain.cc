#include "draft/model/head_chain.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>

namespace outrider {

HeadChain::HeadChain(std::vector<LanguageModel*> layers, std::size_t window)
    : layers_(std::move(layers)),
      window_(window),
      behind_(layers_.size() - 1,
              std::vector<Behind>(static_cast<std::size_t>(capabilities().n_sequences))),
      tentative_(static_cast<std::size_t>(capabilities().n_sequences)) {}

std::size_t HeadChain::layer_of(std::int32_t depth) const {
  return std::min(static_cast<std::size_t>(depth), layers_.size() - 1);
}

// A layer behind the first reads the whole path, which the first one's room does not count.
std::int32_t HeadChain::room(SeqId seq) const {
  const std::optional<TokenTree>& tree = tentative_[static_cast<std::size_t>(seq)].tree;
  return std::max(0, layers_[0]->room(seq) - (tree ? tree->size() - 1 : 0));
}

void HeadChain::set_interrupt(const std::atomic<bool>* flag) {
  for (LanguageModel* layer : layers_) layer->set_interrupt(flag);
}

// Decided tokens, for the layers behind the first.
void HeadChain::append(SeqId seq, std::span<const Token> tokens, std::span<const float> states) {
  assert(states.size() == tokens.size() * width());
  for (std::size_t layer = 1; layer < layers_.size(); ++layer) {
    Decided& unread = behind(layer, seq).unread;
    unread.tokens.insert(unread.tokens.end(), tokens.begin(), tokens.end());
    unread.states.insert(unread.states.end(), states.begin(), states.end());
    forget_front(layer, seq);
  }
}

Status HeadChain::evaluate(std::span<const EvalItem> items) {
  results_.assign(items.size(), ItemRows());
  for (std::size_t i = 0; i < items.size(); ++i) {
    results_[i].first_new = items[i].first_new;
    results_[i].n_prefix = items[i].prefix.size();
  }
  const bool grows = items[0].first_new > 0;
  if (!grows) return begin(items);
  // The states of the new nodes, which a deeper layer may read in this pass already.
  std::vector<std::vector<float>> kept;
  for (const EvalItem& item : items) {
    Tentative& t = tentative_[static_cast<std::size_t>(item.seq)];
    assert(item.first_new > 0 && t.tree && t.tree->size() == item.first_new);
    kept.push_back(t.states);
    t.states.insert(t.states.end(), item.hidden.begin(), item.hidden.end());
  }
  Status status;
  for (std::size_t layer = 1; status.ok() && layer < layers_.size(); ++layer) {
    status = grow(layer, items);
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    Tentative& t = tentative_[static_cast<std::size_t>(items[i].seq)];
    if (status.ok()) {
      t.tree = *items[i].tree;
    } else {
      t.states = std::move(kept[i]);
    }
  }
  return status;
}

// The first layer: prefixes, and roots.
Status HeadChain::begin(std::span<const EvalItem> items) {
  OUTRIDER_RETURN_IF_ERROR(layers_[0]->evaluate(items));
  for (std::size_t i = 0; i < items.size(); ++i) {
    const EvalItem& item = items[i];
    assert(item.first_new == 0 && (item.tree == nullptr || item.tree->size() == 1));
    Tentative& t = tentative_[static_cast<std::size_t>(item.seq)];
    t = Tentative();
    const std::size_t of_prefix = item.prefix.size() * width();
    t.n_prefix = item.prefix.size();
    append(item.seq, item.prefix, item.hidden.first(of_prefix));
    if (item.tree == nullptr) continue;
    t.tree = *item.tree;
    t.states.assign(item.hidden.begin() + static_cast<std::ptrdiff_t>(of_prefix),
                    item.hidden.end());
    const std::span<const float> row = layers_[0]->logits(i, kRoot);
    const std::span<const float> own = layers_[0]->hidden(i, item.prefix.size());
    results_[i].logits.emplace_back(row.begin(), row.end());
    results_[i].hidden.emplace_back(own.begin(), own.end());
  }
  return Status();
}

// Reads what is unread but the last `most` tokens.
Status HeadChain::catch_up(std::size_t layer, SeqId seq, std::size_t most) {
  Behind& b = behind(layer, seq);
  const std::size_t n_batch = static_cast<std::size_t>(capabilities().n_batch);
  while (b.unread.tokens.size() > most) {
    const std::size_t n = std::min(n_batch, b.unread.tokens.size() - most);
    const std::array<EvalItem, 1> item = {
        EvalItem{.seq = seq,
                 .prefix = std::span(b.unread.tokens).first(n),
                 .hidden = std::span(b.unread.states).first(n * width())}};
    OUTRIDER_RETURN_IF_ERROR(layers_[layer]->evaluate(item));
    OUTRIDER_RETURN_IF_ERROR(layers_[layer]->commit(seq, {}));
    const std::ptrdiff_t read = static_cast<std::ptrdiff_t>(n);
    b.unread.tokens.erase(b.unread.tokens.begin(), b.unread.tokens.begin() + read);
    b.unread.states.erase(b.unread.states.begin(),
                          b.unread.states.begin() + read * static_cast<std::ptrdiff_t>(width()));
  }
  return Status();
}

std::vector<HeadChain::Part> HeadChain::parts_of(std::size_t layer,
                                                 std::span<const EvalItem> items) const {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const TokenTree& tree = *items[i].tree;
    std::vector<bool> wanted(static_cast<std::size_t>(tree.size()));
    for (NodeId id = items[i].first_new; id < tree.size(); ++id) {
      if (layer_of(tree.node(id).depth) != layer) continue;
      for (const NodeId at : tree.path_to(id)) wanted[static_cast<std::size_t>(at)] = true;
    }
    if (!wanted[kRoot]) continue;
    Part part{.item = i, .nodes = {kRoot}, .tree = TokenTree(tree.token(kRoot)), .hidden = {}};
    std::vector<NodeId> place(wanted.size(), kNoNode);
    place[kRoot] = kRoot;
    for (NodeId id = 1; id < tree.size(); ++id) {
      const std::size_t n = static_cast<std::size_t>(id);
      if (!wanted[n]) continue;
      const std::size_t parent = static_cast<std::size_t>(tree.node(id).parent);
      place[n] = part.tree.add(place[parent], tree.token(id), 0.5f, 1);
      part.nodes.push_back(id);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

// One pass for all items; what is unread goes in front of it as far as it fits.
Status HeadChain::grow(std::size_t layer, std::span<const EvalItem> items) {
  std::vector<Part> parts = parts_of(layer, items);
  if (parts.empty()) return Status();
  const std::size_t share = static_cast<std::size_t>(capabilities().n_batch) / parts.size();
  std::vector<EvalItem> passes;
  for (Part& part : parts) {
    const SeqId seq = items[part.item].seq;
    if (part.nodes.size() > share) return resource_exhausted("a layer's path does not fit a batch");
    OUTRIDER_RETURN_IF_ERROR(catch_up(layer, seq, share - part.nodes.size()));
    const Behind& b = behind(layer, seq);
    part.hidden = b.unread.states;
    const std::vector<float>& states = tentative_[static_cast<std::size_t>(seq)].states;
    for (const NodeId id : part.nodes) {
      const float* const row = &states[static_cast<std::size_t>(id) * width()];
      part.hidden.insert(part.hidden.end(), row, row + width());
    }
    passes.push_back({.seq = seq,
                      .prefix = b.unread.tokens,
                      .tree = &part.tree,
                      .first_new = 0,
                      .hidden = part.hidden});
  }
  OUTRIDER_RETURN_IF_ERROR(layers_[layer]->evaluate(passes));
  for (std::size_t p = 0; p < parts.size(); ++p) {
    ItemRows& result = results_[parts[p].item];
    const std::size_t n_new =
        static_cast<std::size_t>(items[parts[p].item].tree->size() - result.first_new);
    result.logits.resize(n_new);
    result.hidden.resize(n_new);
    for (std::size_t k = 0; k < parts[p].nodes.size(); ++k) {
      const NodeId id = parts[p].nodes[k];
      if (id < result.first_new || layer_of(items[parts[p].item].tree->node(id).depth) != layer) {
        continue;
      }
      const std::size_t n = static_cast<std::size_t>(id - result.first_new);
      const std::span<const float> row = layers_[layer]->logits(p, static_cast<NodeId>(k));
      const std::span<const float> own = layers_[layer]->hidden(p, passes[p].prefix.size() + k);
      result.logits[n].assign(row.begin(), row.end());
      result.hidden[n].assign(own.begin(), own.end());
    }
  }
  for (const Part& part : parts) {
    const SeqId seq = items[part.item].seq;
    OUTRIDER_RETURN_IF_ERROR(layers_[layer]->commit(seq, {}));
    behind(layer, seq).unread = Decided();
  }
  return Status();
}

std::span<const float> HeadChain::logits(std::size_t item, NodeId node) const {
  return results_[item].logits[static_cast<std::size_t>(node - results_[item].first_new)];
}

std::span<const float> HeadChain::hidden(std::size_t item, std::size_t token) const {
  assert(token >= results_[item].n_prefix);
  return results_[item].hidden[token - results_[item].n_prefix];
}

Status HeadChain::commit(SeqId seq, std::span<const NodeId> path) {
  assert(path.size() <= 1);
  const Tentative t = std::move(tentative_[static_cast<std::size_t>(seq)]);
  tentative_[static_cast<std::size_t>(seq)] = Tentative();
  const Status status = layers_[0]->commit(seq, path);
  if (!status.ok()) {
    for (std::size_t layer = 1; layer < layers_.size(); ++layer) {
      cut_behind(layer, seq, length(seq));
    }
    return status;
  }
  if (path.empty()) return status;
  const std::array<Token, 1> root = {t.tree->token(kRoot)};
  append(seq, root, std::span(t.states).first(width()));
  return status;
}

// A layer whose depth did not come for long begins anew with the last tokens.
void HeadChain::forget_front(std::size_t layer, SeqId seq) {
  Behind& b = behind(layer, seq);
  const std::size_t n = b.unread.tokens.size();
  if (n <= window_) return;
  const std::ptrdiff_t dropped = static_cast<std::ptrdiff_t>(n - window_);
  b.start += layers_[layer]->length(seq) + static_cast<Pos>(dropped);
  (void)layers_[layer]->truncate(seq, 0);
  b.unread.tokens.erase(b.unread.tokens.begin(), b.unread.tokens.begin() + dropped);
  b.unread.states.erase(b.unread.states.begin(),
                        b.unread.states.begin() + dropped * static_cast<std::ptrdiff_t>(width()));
}

void HeadChain::cut_behind(std::size_t layer, SeqId seq, Pos length) {
  Behind& b = behind(layer, seq);
  const Pos read = b.start + layers_[layer]->length(seq);
  if (length > read) {
    b.unread.tokens.resize(static_cast<std::size_t>(length - read));
    b.unread.states.resize(b.unread.tokens.size() * width());
    return;
  }
  b.unread = Decided();
  if (length > b.start && layers_[layer]->truncate(seq, length - b.start).ok()) return;
  b.start = length;
  (void)layers_[layer]->truncate(seq, 0);
}

Status HeadChain::truncate(SeqId seq, Pos length) {
  tentative_[static_cast<std::size_t>(seq)] = Tentative();
  const Status status = layers_[0]->truncate(seq, length);
  const Pos kept = status.ok() ? length : this->length(seq);
  for (std::size_t layer = 1; layer < layers_.size(); ++layer) cut_behind(layer, seq, kept);
  return status;
}

Status HeadChain::share(SeqId from, SeqId to, Pos length) {
  OUTRIDER_RETURN_IF_ERROR(truncate(to, 0));
  OUTRIDER_RETURN_IF_ERROR(layers_[0]->share(from, to, length));
  for (std::size_t layer = 1; layer < layers_.size(); ++layer) {
    const Behind& source = behind(layer, from);
    Behind& b = behind(layer, to);
    const Pos read = source.start + layers_[layer]->length(from);
    const Pos shared = std::min(read, length) - source.start;
    const bool done = shared > 0 && layers_[layer]->share(from, to, shared).ok();
    b = Behind{.start = done ? source.start : std::min(read, length), .unread = {}};
    if (length > read) b.unread = source.unread;
    cut_behind(layer, to, length);
  }
  return Status();
}

std::string HeadChain::check_integrity() const {
  for (std::size_t layer = 1; layer < layers_.size(); ++layer) {
    for (SeqId seq = 0; seq < capabilities().n_sequences; ++seq) {
      const Behind& b = behind_[layer - 1][static_cast<std::size_t>(seq)];
      const Pos end =
          b.start + layers_[layer]->length(seq) + static_cast<Pos>(b.unread.tokens.size());
      const std::string where =
          "layer " + std::to_string(layer) + ", sequence " + std::to_string(seq) + ": ";
      const Pos decided =
          length(seq) + static_cast<Pos>(tentative_[static_cast<std::size_t>(seq)].n_prefix);
      if (end != decided) {
        return where + "it knows " + std::to_string(end) + " tokens, the first layer has " +
               std::to_string(decided);
      }
      if (b.unread.states.size() != b.unread.tokens.size() * width()) {
        return where + "tokens and states differ in number";
      }
    }
  }
  return "";
}

}  // namespace outrider
