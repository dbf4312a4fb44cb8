// DraftChoice: which tokens a draft model proposes behind one of its nodes.
//
// Coupled: the tokens in falling order of a log p + g under the target's own noise, so the first is
// the draft's guess of the target's draw and the next ones are the best further guesses
// (dist/gumbel.h). For the rules that need draws: tokens drawn from p one after the other, without
// replacement, with noise of their own, and a note of p.
//
// How many, and whether any: DraftShape, by the largest probabilities only, so that what was drawn
// never decides whether it is sent.
//
// Where the sampler chain is greedy (temperature 0), the raw row stands in for what it leaves: its
// likeliest tokens in order, and for the shape the probabilities at temperature 1. What it has
// above the one that the chain leaves was ruled out by a grammar or a bias, or pushed down by
// penalties: that counts as impossible.
//
// Tested by draft_choice_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "dist/distribution.h"
#include "dist/draws.h"
#include "draft/base/drafter.h"
#include "draft/model/draft_sharpness.h"

namespace outrider {

struct DraftChoice {
  // The node may be followed by these, best first; empty: nothing is drafted here.
  std::vector<Token> tokens;
  // [tokens] how sure the model is of each, if that was asked for: by how much it is ahead of the
  // best other token, 1 / (1 + exp(-lead)), or, where tokens are drawn, the largest probabilities
  // in order, which know nothing of what was drawn.
  //
  // The lead is in a log p + g, the target's noise included: the target says another token only
  // where its log q differs by as much. A token that won against the odds, by a hair, and one
  // that won by far may have the same p. Greedy: in the raw row, without what the chain ruled out.
  std::vector<float> confidence;
  // What they were drawn from, and which of them were; no tokens: none were.
  Draw draw;
  // The first two, where the target's noise decides between them.
  DraftRivals rivals;
};

struct ChoiceContext {
  const DraftShape& shape;
  std::int32_t max_children = 1;  // at least 1
  std::uint64_t seed = 0;
  std::uint64_t root_position = 0;  // of the tree's root in the text
  std::int32_t depth = 0;           // of the node in its tree
  std::uint64_t node = 0;           // tells the nodes of one depth apart, for draws
  bool draws = false;               // the rule needs draws
  bool greedy = false;              // the sampler chain is
  bool wants_confidence = false;
  float sharpness =
      1.0f;  // > 0; scales log p, where nothing is drawn (draft/model/draft_sharpness.h)
};

// `q` is the sampler chain's distribution for `row` ([n_vocab] logits).
DraftChoice choose_draft(std::span<const float> row, const Distribution& q,
                         const ChoiceContext& context);

}  // namespace outrider
