// Draws: what the drafted children of a node were drawn from.
//
// `rejection` and `block` compare the target's probability of a drafted token with the one it was
// drawn with, so a drafter that draws tokens says what from. Children without a draw are taken as
// one-hot: proposed for certain, whatever the reason.
//
// For these rules the output is the target's only if nothing looks at a drawn token before it
// decides whether to send it: stop, branch and prune by the distribution, never by what was drawn.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "dist/pmf.h"

namespace outrider {

struct Draw {
  Pmf p;  // normalised: the draft's distribution after the node, all samplers applied
  std::vector<Token>
      tokens;  // drawn from p one after the other, without replacement, in this order
  // [tokens] the estimates that each is accepted, which know nothing of what was drawn.
  std::vector<float> chances;
};

// Index into the draws of one step's tree; kOneHot: the node's children were not drawn.
using DrawId = std::int32_t;
inline constexpr DrawId kOneHot = -1;

class Draws {
 public:
  DrawId add(Draw draw) {
    draws_.push_back(std::move(draw));
    return static_cast<DrawId>(draws_.size()) - 1;
  }
  // Null for kOneHot.
  const Draw* find(DrawId id) const {
    return id < 0 ? nullptr : &draws_[static_cast<std::size_t>(id)];
  }
  void clear() { draws_.clear(); }

 private:
  std::vector<Draw> draws_;
};

}  // namespace outrider
