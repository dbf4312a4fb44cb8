// Which drafters are asked in a step, for which sequences, and for how much: the planner's part of
// the phase propose().
//
// Tested by engine_planner_test.cc.
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
  std::vector<Sequence*> sequences;
  std::vector<DraftRequest> requests;              // [sequences]
  std::vector<std::unique_ptr<StepGuide>> guides;  // [sequences]; null: not planned
  std::unique_ptr<SharedPasses> passes = std::make_unique<SharedPasses>();
};

// For those of `askers` that it pays for, or that may explore; the others are left out. The step
// must outlive it.
Asking plan_asking(Step& step, std::size_t drafter, std::span<Sequence* const> askers);

// The drafters' indices in the order in which they are asked: as they are; where the planner
// chooses, the cheapest first, since what they guess decides whether the others are asked.
std::vector<std::size_t> asking_order(const Step& step);

}  // namespace outrider
