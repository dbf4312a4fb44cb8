// TreeIds: which of llama.cpp's sequence ids the tokens of one sequence carry.
//
// Idea. Attention in llama.cpp sees the cells that carry a token's own sequence id, up to its
// position. So a tree is written as one id per leaf: a node's cell carries the ids of all leaves
// below it, and branches do not see each other.
//
//     text A B  |  root -> c -> d      ids:  A B root: 0 1 2     c: 0 1   d: 0   e: 1   f: 2
//               |       |   +-> e
//               |       +-> f
//
// The first child of a node goes on with the node's own id, each further one begins a fresh id. So
// a chain carries the sequence's own id alone, and costs what it would cost without any of this. A
// fresh id must hold the whole text before its branch (llama.cpp refuses tokens whose ids differ in
// their first or last position). Copying all of a text of 4,096 tokens to an id takes 160 to 570
// microseconds, a few cells 2 to 3; so an id keeps its text from step to step, and what has been
// committed since it was last used is copied when it is used again.
//
// After a commit of root, f:  2 gives f's cell to 0; d, e, c are taken from their ids, and 1 and 2
// keep A B root for the next time.
//
// Cost: linear in the nodes, times the depth for the leaves' paths. A value that makes no calls: it
// says what is to be copied, taken and parked. Source: SpecInfer's tree attention (Miao et al.
// 2023) in terms of llama.cpp's unified cache. Not thread safe. Tested by tree_ids_test.cc against
// plain sets of tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "tree/token_tree.h"

namespace outrider::llama {

class TreeIds {
 public:
  using Id = std::int32_t;  // llama_seq_id

  // The tokens of `from` at positions [begin, end) are to be given to `to` as well. Not empty.
  struct Copy {
    Id from = 0;
    Id to = 0;
    Pos begin = 0;
    Pos end = 0;
  };
  // All positions from `from` on are to be taken from `id`.
  struct Removal {
    Id id = 0;
    Pos from = 0;
  };
  // What becomes of the tentative cells in settle(), in this order. Each cell is parked at most
  // once.
  struct Settlement {
    std::vector<Copy> parked;  // `to` is 0: the caller knows its junk id
    std::vector<Removal> removed;
    std::vector<Copy> copied;
  };

  TreeIds() = default;
  // `own` always holds the sequence's text; the `n_extra` ids from `first_extra` on are for leaves.
  TreeIds(Id own, Id first_extra, std::int32_t n_extra);

  // Tentative: a prefix at positions [length, base), and a tree whose root stands at base.
  bool open() const { return open_; }
  Pos base() const { return base_; }
  std::int32_t n_prefix() const { return base_ - length_; }
  std::int32_t n_nodes() const { return static_cast<std::int32_t>(nodes_.size()); }
  std::int32_t n_tokens() const { return open_ ? n_prefix() + n_nodes() : 0; }
  NodeId parent(NodeId id) const { return nodes_[static_cast<std::size_t>(id)].parent; }

  // Ids in use by the tentative tree, one per leaf; at least the sequence's own.
  std::int32_t n_ids() const { return static_cast<std::int32_t>(tips_.size()); }
  Id id(std::int32_t index) const { return index == 0 ? own_ : first_extra_ + index - 1; }

  // True when `tree` is the tentative one with more nodes behind those below first_new.
  bool is_grown(const TokenTree& tree, NodeId first_new) const;

  // Starts a tentative tree behind a text of `length` tokens. REQUIRES: !open().
  void begin(Pos length, std::int32_t n_prefix);

  // Adds the nodes from n_nodes() on. Appends to `copies` what must be copied before they are
  // evaluated. REQUIRES: open(); is_grown(tree, n_nodes()); no more leaves than ids.
  void grow(const TokenTree& tree, std::vector<Copy>* copies);

  // Appends the ids of each node from `first` on to `ids`, and how many they are to `counts`.
  void list_ids(NodeId first, std::vector<Id>* ids, std::vector<std::int32_t>* counts) const;

  // Takes the nodes from `first` on back out, as if they had never been added; with first = 0 ends
  // it. Appends what must be taken from the ids. REQUIRES: open().
  void undo(NodeId first, std::vector<Removal>* removed);

  // Ends what is tentative. What stays is the prefix and `path` (kept), or nothing of it (!kept,
  // path empty). `cells` [n_tokens()] are those of the prefix and the nodes; rejected ones below
  // `park_below` are parked, the others only taken. REQUIRES: open(); a path from the root down.
  Settlement settle(bool kept, std::span<const NodeId> path, std::span<const std::int32_t> cells,
                    std::int32_t park_below);

  // The text is cut to `length`: what must be taken from the ids. REQUIRES: !open().
  void truncate(Pos length, std::vector<Removal>* removed);

  // The extra ids hold nothing any more: the cache was cleared or rebuilt. REQUIRES: !open(), or
  // only the sequence's own id is in use.
  void detach();
  // The same in whatever state it is; what was tentative is gone, too.
  void lose();

  // Positions that the id with this index (of all, in use or not) holds now, from 0 on; the text
  // has `length` tokens.
  Pos held(std::int32_t index, Pos length) const;
  std::int32_t n_extra() const { return static_cast<std::int32_t>(held_.size()) - 1; }

 private:
  struct Node {
    Token token = kNoToken;
    NodeId parent = kNoNode;
    std::int32_t depth = 0;
    std::int32_t index = 0;  // of the id that goes on along first children
    bool has_child = false;
  };

  const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  std::int32_t fresh(NodeId parent, NodeId first_new, std::vector<Copy>* copies);
  void park_segment(std::int32_t index, Pos from, std::span<const std::int32_t> cells,
                    std::int32_t park_below, std::vector<Copy>* parked) const;

  Id own_ = 0;
  Id first_extra_ = 0;
  std::vector<Pos> held_;  // [1 + n_extra] of the committed text; [0] is not used
  bool open_ = false;
  Pos length_ = 0;
  Pos base_ = 0;
  std::vector<Node> nodes_;
  std::vector<NodeId> tips_;  // per id in use: the leaf at its end; kNoNode: no node at all
};

}  // namespace outrider::llama
