// SuffixGrowth: one request's tree of guesses, grown best first from an index and stores.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "draft/base/drafter.h"
#include "draft/suffix/suffix_blend.h"
#include "draft/suffix/suffix_index.h"
#include "draft/suffix/suffix_memory.h"
#include "draft/suffix/suffix_store.h"

namespace outrider {

// How much is looked at for a node's children.
struct SuffixReach {
  std::size_t own_levels = 3;      // matches of different lengths in the own text
  std::size_t continuations = 8;   // of one match, those used last
  std::size_t store_places = 24;   // of each store
  std::size_t own_shortest = 1;    // tokens of a match in the own text at least
  std::size_t store_shortest = 2;  // and in a store, where a single token says nothing
  // What is remembered is looked at as the own text is, where it agrees as a store must.
  std::size_t memory_places = 4;  // parts of the memory, those that agree longest
  std::size_t memory_levels = 2;  // matches of different lengths in each
};

using SuffixStores = std::vector<std::shared_ptr<const SuffixStore>>;

// Reused from request to request, so that nothing is allocated in the long run. One thread.
//
// Cost, best first: each node that is added is expanded once: up to own_levels lists of
// `continuations` and one pass over the store's places that still agree with the path.
class SuffixGrowth {
 public:
  SuffixGrowth(SuffixStores stores, const SuffixBlend& blend, const SuffixReach& reach);

  // Extends request.tree by at most request.max_nodes, with request.shape.branches leaves of ours.
  // Of the shape, split_p is passed over: it keeps a draft model from paying for branches level by
  // level, and here a node costs the same wherever it hangs, so the likeliest are taken (with a
  // split_p of 0.1, 3 to 8 % fewer tokens a step at width 16).
  // `index` holds request.text; `remembered` are the places where its end occurs in earlier texts,
  // newest first.
  void grow(const SuffixIndex& index, const DraftRequest& request,
            std::span<const SuffixMemory::Place> remembered = {});

  std::span<const std::shared_ptr<const SuffixStore>> stores() const { return stores_; }
  // Not while a tree is growing. Adding may throw std::bad_alloc, with nothing changed.
  void add_store(std::shared_ptr<const SuffixStore> store) { stores_.push_back(std::move(store)); }
  // True when there was one of this path.
  bool remove_store(std::string_view path);
  std::size_t memory_bytes() const;

 private:
  // A place in a store that agrees with the context and the path so far.
  struct Place {
    std::uint32_t store = 0;
    std::uint32_t length = 0;  // of the agreement
    std::uint64_t next = 0;    // what follows it
  };
  // A node that may get children.
  struct Open {
    NodeId node = kRoot;
    float chance = 1.0f;
    SuffixIndex::Context own;
    std::size_t first_place = 0;  // in places_, longest agreement first
    std::size_t n_places = 0;
    std::size_t first_remembered = 0;  // in remembered_
    std::size_t n_remembered = 0;
  };
  // A child that may be added.
  struct Candidate {
    float chance = 0.0f;       // of the whole path
    std::uint32_t order = 0;   // of finding; earlier first among equals
    std::uint32_t parent = 0;  // in open_
    Token token = kNoToken;

    bool operator<(const Candidate& other) const {
      return chance != other.chance ? chance < other.chance : order > other.order;
    }
  };

  void find_places(std::span<const Token> text);
  void find_remembered(std::span<const SuffixMemory::Place> remembered);
  void expand(const SuffixIndex& index, const DraftShape& shape, std::uint32_t at);
  void add_levels(const SuffixIndex& index, SuffixIndex::Context context, std::size_t most,
                  std::size_t shortest);
  void add_store_levels(const Open& open);
  void tally(std::span<const Place> places);
  void follow(const SuffixIndex& index, const Candidate& candidate, NodeId node);

  SuffixStores stores_;
  SuffixBlend blend_;
  SuffixReach reach_;

  std::vector<Open> open_;
  std::vector<Candidate> candidates_;  // a heap
  std::vector<Place> places_;
  std::vector<SuffixMemory::Place> remembered_;
  std::vector<SuffixStore::Place> found_;
  std::vector<SuffixIndex::Continuation> continuations_;
  std::vector<SuffixLevel> levels_;
  std::vector<std::size_t> level_begins_;
  std::vector<SuffixChance> chances_;
  std::vector<bool> has_child_;  // by NodeId: has one of ours
  std::uint32_t order_ = 0;
};

}  // namespace outrider
