// Which drafters are asked in a step, for which sequences, and for how much: the planner's part of
// the phase propose().
//
// A draft model has to read what it does not know of a text before it guesses. Alone a text is read
// at once. Beside others that go on, whom that holds up, what may be read in a step is limited
// (engine/prompt_share.h): a long text is read in pieces, and goes on without guesses meanwhile. So
// guesses come later, and whether reading pays is asked of what is still to come then.
//
// Tested by engine_planner_test.cc and engine_planner_reading_test.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "draft/base/drafter.h"
#include "engine/guide.h"
#include "engine/step.h"

namespace outrider {

// One drafter's work in one step.
struct Asking {
  // A text that is read first, in pieces: it gets no guesses in this step.
  struct Piece {
    Sequence* sequence = nullptr;
    std::int64_t tokens = 0;  // to read now; > 0
  };

  std::vector<Sequence*> sequences;
  std::vector<DraftRequest> requests;              // [sequences]
  std::vector<std::unique_ptr<StepGuide>> guides;  // [sequences]; null: not planned
  std::unique_ptr<SharedPasses> passes = std::make_unique<SharedPasses>();
  std::vector<Piece> pieces;
  bool holds_up_others = false;  // what is read, at once or in pieces
};

// For those of `askers` that it pays for, or that may explore; the others are left out. One whose
// text finds no room in the drafter is asked for until that has said so. The step must outlive it.
Asking plan_asking(Step& step, std::size_t drafter, std::span<Sequence* const> askers);

// The drafters' indices in the order in which they are asked: as they are; where the planner
// chooses, the cheapest first, since what they guess decides whether the others are asked.
std::vector<std::size_t> asking_order(const Step& step);

}  // namespace outrider
