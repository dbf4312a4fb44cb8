// PromptDivision: which prompts get how much of what a step may read of them.
//
// Idea. Oldest first alone lets a question of 50 tokens wait for the 30,000 of the prompt before
// it. Shortest first alone (SRPT) lets a long prompt wait for ever while short ones come. So half
// is for the oldest prompt, whatever comes. The other half is for those that have less than half
// as much left as the oldest, the shortest first: reading b tokens beside the oldest's a gives its
// first token a - b tokens sooner and costs the oldest b, so it is worth it where a > 2 b. What
// nobody takes of the one half goes to the other.
//
//     left 30,000 (oldest), 50, 600; a step reads 512    262, 50 and 200
//     left 30,000 (oldest), 20,000                       512, 0: together they would both be late
//
// Bounds. The oldest waits at most twice as long as it would alone, and who is behind it gets
// older. A prompt alone gets all. Where an allowance is a few tokens (engine/prompt_share.h), half
// of it would be less than a piece that kernels work on: what the others' half is short of a piece
// is kept for the next steps, in which they get a whole one.
//
// A request that waits for a prompt's first tokens (Sequence::awaited) makes that prompt as short
// as these.
//
// Which prompt is read when changes no text: it is cut in other places only. Tested by
// prompt_division_test.cc, and on an engine by engine_prompts_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace outrider {

// Of `missing` tokens behind `seen`, those up to the last multiple of `grid` within `room`, if any;
// else `room`, if that is less.
std::int64_t cut_at_grid(Pos seen, std::int64_t missing, std::int64_t room, std::int64_t grid);

class PromptDivision {
 public:
  struct Unread {
    Pos seen = 0;              // tokens that the target holds
    std::int64_t missing = 0;  // to be read, > 0
    std::int64_t wanted = 0;   // of these, what somebody waits for first; <= missing
  };

  // Of `allowance` tokens (>= 0), those of each prompt: [prompts], which come oldest first. Cuts
  // are at multiples of `grid` (>= 1) where they can be; where a short prompt takes part, they are
  // anywhere.
  std::vector<std::int64_t> divide(std::span<const Unread> prompts, std::int64_t allowance,
                                   std::int64_t grid);

 private:
  std::int64_t owed_ = 0;  // to the others of earlier steps, in half tokens
};

}  // namespace outrider
