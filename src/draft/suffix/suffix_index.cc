#include "draft/suffix/suffix_index.h"

#include <algorithm>
#include <cassert>

namespace outrider {

SuffixIndex::SuffixIndex() { states_.emplace_back(); }

void SuffixIndex::clear() { *this = SuffixIndex(); }

std::size_t SuffixIndex::memory_bytes() const {
  return sizeof(*this) + text_.capacity() * sizeof(Token) + states_.capacity() * sizeof(StateData) +
         edges_.capacity() * sizeof(Edge) + table_.capacity() * sizeof(std::uint32_t);
}

std::size_t SuffixIndex::bucket_of(State from, Token token) const {
  const std::uint64_t key = (std::uint64_t{from} << 32) | static_cast<std::uint32_t>(token);
  return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & (table_.size() - 1);
}

std::uint32_t SuffixIndex::find_edge(State from, Token token) const {
  const StateData& state = states_[from];
  if (state.n_edges <= kHashedFrom) {
    std::uint32_t edge = state.first_edge;
    while (edge != kNone && edges_[edge].token != token) edge = edges_[edge].next;
    return edge;
  }
  for (std::size_t i = bucket_of(from, token);; i = (i + 1) & (table_.size() - 1)) {
    if (table_[i] == 0) return kNone;
    const Edge& edge = edges_[table_[i] - 1];
    if (edge.from == from && edge.token == token) return table_[i] - 1;
  }
}

void SuffixIndex::grow_table() {
  std::vector<std::uint32_t> old(std::max<std::size_t>(64, table_.size() * 2), 0);
  old.swap(table_);
  for (const std::uint32_t entry : old) {
    if (entry == 0) continue;
    std::size_t i = bucket_of(edges_[entry - 1].from, edges_[entry - 1].token);
    while (table_[i] != 0) i = (i + 1) & (table_.size() - 1);
    table_[i] = entry;
  }
}

void SuffixIndex::hash_edge(std::uint32_t edge) {
  if (2 * (n_hashed_ + 1) > table_.size()) grow_table();
  std::size_t i = bucket_of(edges_[edge].from, edges_[edge].token);
  while (table_[i] != 0) i = (i + 1) & (table_.size() - 1);
  table_[i] = edge + 1;
  ++n_hashed_;
}

// The new edge is the one used last.
void SuffixIndex::add_edge(State from, Token token, State to) {
  StateData& state = states_[from];
  const std::uint32_t edge = static_cast<std::uint32_t>(edges_.size());
  edges_.push_back({.token = token, .from = from, .to = to, .next = state.first_edge});
  if (state.first_edge != kNone) edges_[state.first_edge].previous = edge;
  state.first_edge = edge;
  ++state.n_edges;
  if (state.n_edges < kHashedFrom + 1) return;
  if (state.n_edges > kHashedFrom + 1) return hash_edge(edge);
  for (std::uint32_t e = edge; e != kNone; e = edges_[e].next) hash_edge(e);
}

// Moves the edge to the front of its state's list.
void SuffixIndex::use_edge(std::uint32_t edge) {
  Edge& e = edges_[edge];
  StateData& state = states_[e.from];
  if (state.first_edge == edge) return;
  edges_[e.previous].next = e.next;
  if (e.next != kNone) edges_[e.next].previous = e.previous;
  e.previous = kNone;
  e.next = state.first_edge;
  edges_[state.first_edge].previous = edge;
  state.first_edge = edge;
}

// `from` reaches, with `token`, a state that also holds longer parts than those that now occur at
// one more place. The shorter ones get a state of their own, which is returned.
SuffixIndex::State SuffixIndex::split(State from, std::uint32_t edge, Token token) {
  const State old = edges_[edge].to;
  const State fresh = static_cast<State>(states_.size());
  states_.push_back(
      {.length = states_[from].length + 1, .link = states_[old].link, .count = states_[old].count});
  // In their order: the oldest is added first.
  std::uint32_t e = states_[old].first_edge;
  while (e != kNone && edges_[e].next != kNone) e = edges_[e].next;
  for (; e != kNone; e = edges_[e].previous) add_edge(fresh, edges_[e].token, edges_[e].to);
  states_[old].link = fresh;
  for (State state = from;; state = states_[state].link) {
    const std::uint32_t back = find_edge(state, token);
    if (back == kNone || edges_[back].to != old) break;
    edges_[back].to = fresh;
    if (state == kEmpty) break;
  }
  return fresh;
}

void SuffixIndex::append(Token token) {
  assert(token >= 0 && text_.size() < (std::size_t{1} << 30));
  text_.push_back(token);
  const State fresh = static_cast<State>(states_.size());
  states_.push_back({.length = static_cast<std::uint32_t>(text_.size())});

  State from = last_;
  std::uint32_t edge = find_edge(from, token);
  while (edge == kNone) {
    add_edge(from, token, fresh);
    if (from == kEmpty) break;
    from = states_[from].link;
    edge = find_edge(from, token);
  }
  last_ = fresh;
  State link = kEmpty;
  if (edge != kNone) {
    link = edges_[edge].to;
    if (states_[link].length != states_[from].length + 1) link = split(from, edge, token);
  }
  states_[fresh].link = link;

  // What is known of each suffix: it occurs once more, and the token is what followed last.
  int level = 0;
  for (State s = fresh; s != kEmpty && level < kMaxLevels; s = states_[s].link, ++level) {
    ++states_[s].count;
  }
  for (level = 0; edge != kNone && level < kMaxLevels; ++level) {
    use_edge(edge);
    if (from == kEmpty) break;
    from = states_[from].link;
    edge = find_edge(from, token);
  }
}

SuffixIndex::Context SuffixIndex::longest_match() const {
  return shorter({.state = last_, .length = states_[last_].length});
}

SuffixIndex::Context SuffixIndex::shorter(Context context) const {
  const State link = states_[context.state].link;
  return {.state = link, .length = states_[link].length};
}

SuffixIndex::Context SuffixIndex::advance(Context context, Token token) const {
  while (true) {
    const std::uint32_t edge = find_edge(context.state, token);
    if (edge != kNone) return {.state = edges_[edge].to, .length = context.length + 1};
    if (context.state == kEmpty) return {};
    context = shorter(context);
  }
}

void SuffixIndex::continuations(State state, std::size_t most,
                                std::vector<Continuation>& out) const {
  std::uint32_t edge = states_[state].first_edge;
  for (; edge != kNone && most > 0; edge = edges_[edge].next, --most) {
    out.push_back({.token = edges_[edge].token, .count = states_[edges_[edge].to].count});
  }
}

std::string SuffixIndex::check_integrity() const {
  const std::string in = " in state ";
  if (states_.size() > 2 * text_.size() + 1) return "more than 2n states";
  if (edges_.size() > 3 * text_.size()) return "more than 3n edges";
  if (states_[last_].length != text_.size()) return "the last state is not the whole text's";
  std::size_t n_hashed = 0;
  bool deep = false;
  for (State s = 0; s < states_.size(); ++s) {
    const StateData& state = states_[s];
    const std::string name = in + std::to_string(s);
    if (s != kEmpty && states_[state.link].length >= state.length) return "link not shorter" + name;
    if (s != kEmpty && state.count == 0) return "no place" + name;
    int levels = 0;
    for (State up = s; up != kEmpty && levels <= kMaxLevels; up = states_[up].link) ++levels;
    deep = deep || levels > kMaxLevels;
    std::uint32_t n = 0;
    std::uint32_t previous = kNone;
    for (std::uint32_t e = state.first_edge; e != kNone; e = edges_[e].next, ++n) {
      const Edge& edge = edges_[e];
      if (edge.from != s || edge.previous != previous) return "broken list of edges" + name;
      if (find_edge(s, edge.token) != e) return "an edge that is not found" + name;
      if (states_[edge.to].length <= state.length) return "an edge to a shorter state" + name;
      previous = e;
    }
    if (n != state.n_edges) return "wrong number of edges" + name;
    if (n > kHashedFrom) n_hashed += n;
  }
  if (n_hashed != n_hashed_) return "wrong number of hashed edges";
  for (State s = 1; s < states_.size() && !deep; ++s) {  // deep ones may count too little
    const State link = states_[s].link;
    if (link != kEmpty && states_[link].count < states_[s].count) {
      return "a suffix at fewer places" + in + std::to_string(s);
    }
  }
  // The text's own path, prefix by prefix.
  State at = kEmpty;
  for (std::size_t i = 0; i < text_.size(); ++i) {
    const std::uint32_t edge = find_edge(at, text_[i]);
    if (edge == kNone) return "the text is not read at token " + std::to_string(i);
    at = edges_[edge].to;
  }
  return at == last_ ? "" : "the text does not lead to its own state";
}

}  // namespace outrider
