// BlockGrowth: the best tree of a block, whose distributions are known for all its depths at once.
//
// Idea. A draft model has to be run to see behind a guess. A block's distributions are there
// already, and the noise depends on a token's position, not on the path to it: the score of a token
// at a depth, a log p + g, is the same behind every node of that depth. So by how much it leads
// there (draft/model/draft_choice.h) tells the chance that the target says it, the product along a
// path is the chance of the path, and the likeliest `max_nodes` nodes are found best first, without
// a pass:
//
//      depth 1: the .8, a .3     depth 2: cat .9, dog .2
//      four nodes: the, the cat, a, a cat      .8 .72 .3 .27     (the dog: .16)
//
// A node is less likely than its parent, so the set is a tree. Where a grammar or penalties make
// the distributions depend on the path, a node's are computed with the chain of its own path.
//
// The same at temperature 0, where the noise counts nothing and the lead is that of the raw row.
// For the rules that need draws each node has its own. (One for all nodes of a depth would be
// wrong: behind an end token nothing is looked for, and so what was drawn at one node would decide
// what is sent elsewhere.)
//
// Without a guide, which knows what such leads were worth, a lead counts three times: chances are
// steeper than the head says (docs/decisions.md).
//
// Cost. A choice of the best tokens for each depth that is reached (for each node, with draws or a
// chain that has state), and a heap of candidates. Source: DDTree (2604.12989) builds the same tree
// from the probabilities alone; with the target's noise the leads take their place. Tested by
// block_growth_test.cc, against all trees of small worlds.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "draft/base/drafter.h"
#include "draft/model/draft_choice.h"

namespace outrider {

// What is known of a block.
struct Block {
  std::int32_t n_depths = 0;
  // [n_vocab] logits of the tokens at a depth, 1 to n_depths.
  std::function<std::span<const float>(std::int32_t depth)> row;
  std::function<bool(Token)> is_end;  // tokens that nothing follows; may be empty: none
  float sharpness = 1.0f;             // see ChoiceContext
};

// What was proposed, a tree of its own: the request's may hold other drafters' nodes.
struct GrownBlock {
  TokenTree tree{kNoToken};
  // [nodes] who was best behind each; nobody where nothing was looked for.
  std::vector<DraftRivals> rivals;
};

// Adds the best nodes of the block to the request's tree: at most max_nodes, with at most
// shape.branches leaves; of likelier nodes that would be one leaf too many, less likely ones that
// are none take the place.
GrownBlock grow_block(const DraftRequest& request, const Block& block);

}  // namespace outrider
