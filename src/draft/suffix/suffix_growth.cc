#include "draft/suffix/suffix_growth.h"

#include <algorithm>

namespace outrider {

SuffixGrowth::SuffixGrowth(SuffixStores stores, const SuffixBlend& blend, const SuffixReach& reach)
    : stores_(std::move(stores)), blend_(blend), reach_(reach) {}

std::size_t SuffixGrowth::memory_bytes() const {
  return open_.capacity() * sizeof(Open) + candidates_.capacity() * sizeof(Candidate) +
         places_.capacity() * sizeof(Place) + remembered_.capacity() * sizeof(SuffixMemory::Place) +
         found_.capacity() * sizeof(SuffixStore::Place) +
         continuations_.capacity() * sizeof(SuffixIndex::Continuation) +
         levels_.capacity() * (sizeof(SuffixLevel) + sizeof(std::size_t)) +
         chances_.capacity() * sizeof(SuffixChance);
}

bool SuffixGrowth::remove_store(std::string_view path) {
  return std::erase_if(stores_, [path](const std::shared_ptr<const SuffixStore>& store) {
           return store->file().path() == path;
         }) > 0;
}

// The stores' places that agree with the end of the text, longest first over all stores.
void SuffixGrowth::find_places(std::span<const Token> text) {
  places_.clear();
  for (std::uint32_t i = 0; i < stores_.size(); ++i) {
    stores_[i]->find(text, reach_.store_places, found_);
    for (const SuffixStore::Place& place : found_) {
      if (place.length < reach_.store_shortest) break;
      places_.push_back({.store = i, .length = place.length, .next = place.next});
    }
  }
  if (stores_.size() < 2) return;
  std::stable_sort(places_.begin(), places_.end(),
                   [](const Place& a, const Place& b) { return a.length > b.length; });
}

// Of the remembered places the ones that agree longest; of equals the newer.
void SuffixGrowth::find_remembered(std::span<const SuffixMemory::Place> remembered) {
  remembered_.clear();
  for (const SuffixMemory::Place& place : remembered) {
    if (place.context.length >= reach_.store_shortest) remembered_.push_back(place);
  }
  if (remembered_.size() < 2) return;
  std::stable_sort(remembered_.begin(), remembered_.end(),
                   [](const SuffixMemory::Place& a, const SuffixMemory::Place& b) {
                     return a.context.length > b.context.length;
                   });
  remembered_.resize(std::min(remembered_.size(), reach_.memory_places));
}

// A text's end counts as something that followed, but is nothing to guess.
void SuffixGrowth::add_levels(const SuffixIndex& index, SuffixIndex::Context context,
                              std::size_t most, std::size_t shortest) {
  for (std::size_t i = 0; i < most && context.length >= shortest; ++i) {
    const std::size_t begin = continuations_.size();
    index.continuations(context.state, reach_.continuations, continuations_);
    const std::size_t n = continuations_.size() - begin;
    std::uint32_t total = 0;
    std::size_t mark = continuations_.size();
    for (std::size_t k = begin; k < continuations_.size(); ++k) {
      total += continuations_[k].count;
      if (continuations_[k].token == SuffixMemory::kTextEnd) mark = k;
    }
    const bool has_mark = mark < continuations_.size();
    if (has_mark) continuations_.erase(continuations_.begin() + static_cast<std::ptrdiff_t>(mark));
    if (continuations_.size() > begin) {
      const std::uint32_t n_distinct = index.n_continuations(context.state);
      if (n_distinct > n) total = std::max(total, index.count(context.state));
      levels_.push_back({.length = context.length,
                         .total = total,
                         .n_distinct = n_distinct,
                         .first_is_last_used = !has_mark || mark > begin});
      level_begins_.push_back(begin);
    }
    context = index.shorter(context);
  }
}

// Counts what follows the places, as one level.
void SuffixGrowth::tally(std::span<const Place> places) {
  const std::size_t begin = continuations_.size();
  std::uint32_t total = 0;
  for (const Place& place : places) {
    const Token token = stores_[place.store]->token_at(place.next);
    if (token == kNoToken) continue;  // a text's end
    ++total;
    std::size_t k = begin;
    while (k < continuations_.size() && continuations_[k].token != token) ++k;
    if (k == continuations_.size()) continuations_.push_back({.token = token, .count = 0});
    ++continuations_[k].count;
  }
  if (total == 0) return;
  levels_.push_back({.length = places.back().length,
                     .total = total,
                     .n_distinct = static_cast<std::uint32_t>(continuations_.size() - begin)});
  level_begins_.push_back(begin);
}

// Two levels: the places that agree longest, and all of them.
void SuffixGrowth::add_store_levels(const Open& open) {
  const std::span<const Place> all(places_.data() + open.first_place, open.n_places);
  if (all.empty()) return;
  std::size_t n_longest = 1;
  while (n_longest < all.size() && all[n_longest].length == all[0].length) ++n_longest;
  tally(all.first(n_longest));
  if (n_longest < all.size()) tally(all);
}

// Puts the children that open_[at] may get among the candidates.
void SuffixGrowth::expand(const SuffixIndex& index, const DraftShape& shape, std::uint32_t at) {
  const Open open = open_[at];
  levels_.clear();
  level_begins_.clear();
  continuations_.clear();
  add_levels(index, open.own, reach_.own_levels, reach_.own_shortest);
  const std::size_t n_own = levels_.size();
  for (std::size_t i = 0; i < open.n_remembered; ++i) {
    const SuffixMemory::Place& place = remembered_[open.first_remembered + i];
    add_levels(*place.index, place.context, reach_.memory_levels, reach_.store_shortest);
  }
  add_store_levels(open);
  for (std::size_t i = 0; i < levels_.size(); ++i) {  // now that the list stays where it is
    const std::size_t end = i + 1 < levels_.size() ? level_begins_[i + 1] : continuations_.size();
    levels_[i].continuations =
        std::span(continuations_).subspan(level_begins_[i], end - level_begins_[i]);
  }
  const bool stores_only = n_own == 0 && open.n_remembered == 0;
  if (!stores_only && n_own < levels_.size()) {  // else they are in order
    std::stable_sort(
        levels_.begin(), levels_.end(),
        [](const SuffixLevel& a, const SuffixLevel& b) { return a.length > b.length; });
  }
  blend_.blend(levels_, chances_);
  if (chances_.empty()) return;

  std::size_t best = 0;
  float second = 0.0f;
  for (std::size_t i = 1; i < chances_.size(); ++i) {
    if (chances_[i].chance > chances_[best].chance) {
      second = chances_[best].chance;
      best = i;
    } else {
      second = std::max(second, chances_[i].chance);
    }
  }
  if (chances_[best].chance < shape.p_min) return;
  if (chances_[best].chance < shape.p_ratio * second) return;
  for (std::size_t i = 0; i < chances_.size(); ++i) {
    if (i != best && shape.branches == 1) continue;
    candidates_.push_back({.chance = open.chance * chances_[i].chance,
                           .order = order_++,
                           .parent = at,
                           .token = chances_[i].token});
    std::push_heap(candidates_.begin(), candidates_.end());
  }
}

// The new node as one that may get children: the own match with its token, and the places that went
// on with it.
void SuffixGrowth::follow(const SuffixIndex& index, const Candidate& candidate, NodeId node) {
  const Open& parent = open_[candidate.parent];
  Open child{.node = node,
             .chance = candidate.chance,
             .own = index.advance(parent.own, candidate.token),
             .first_place = places_.size(),
             .first_remembered = remembered_.size()};
  const std::size_t end = parent.first_place + parent.n_places;
  for (std::size_t i = parent.first_place; i < end; ++i) {
    const Place place = places_[i];
    if (stores_[place.store]->token_at(place.next) != candidate.token) continue;
    places_.push_back({.store = place.store, .length = place.length + 1, .next = place.next + 1});
  }
  child.n_places = places_.size() - child.first_place;
  for (std::size_t i = 0; i < parent.n_remembered; ++i) {
    const SuffixMemory::Place place = remembered_[parent.first_remembered + i];
    const SuffixIndex::Context context = place.index->advance(place.context, candidate.token);
    if (context.length < reach_.store_shortest) continue;
    remembered_.push_back({.index = place.index, .context = context});
  }
  child.n_remembered = remembered_.size() - child.first_remembered;
  open_.push_back(child);
}

void SuffixGrowth::grow(const SuffixIndex& index, const DraftRequest& request,
                        std::span<const SuffixMemory::Place> remembered) {
  TokenTree& tree = *request.tree;
  open_.clear();
  candidates_.clear();
  order_ = 0;
  find_places(request.text);
  find_remembered(remembered);
  open_.push_back({.own = index.longest_match(),
                   .n_places = places_.size(),
                   .n_remembered = remembered_.size()});
  expand(index, request.shape, 0);

  has_child_.assign(static_cast<std::size_t>(tree.size()), false);
  std::int32_t leaves = 0;
  for (std::int32_t added = 0; added < request.max_nodes && !candidates_.empty();) {
    std::pop_heap(candidates_.begin(), candidates_.end());
    const Candidate best = candidates_.back();
    candidates_.pop_back();
    const NodeId parent = open_[best.parent].node;
    // A node's first child takes over its place as a leaf; the root is none.
    const bool new_leaf = has_child_[static_cast<std::size_t>(parent)] || parent == kRoot;
    if (new_leaf && leaves >= request.shape.branches) continue;
    leaves += new_leaf ? 1 : 0;
    has_child_[static_cast<std::size_t>(parent)] = true;
    // What another drafter proposed too is marked as ours as well, and costs nothing.
    const bool known = tree.child(parent, best.token) != kNoNode;
    const NodeId node = tree.add(parent, best.token, best.chance, request.mask);
    if (!known) {
      has_child_.push_back(false);
      ++added;
    }
    follow(index, best, node);
    if (added < request.max_nodes) {
      expand(index, request.shape, static_cast<std::uint32_t>(open_.size() - 1));
    }
  }
}

}  // namespace outrider
