// A step for tests of single phases.
#pragma once

#include "engine/step.h"
#include "testing/fake_engine.h"

namespace outrider::testing {

// Of one sequence, which gives a token, without drafters. All that is given must outlive it.
inline Step step_of(Sequence& sequence, LanguageModel& target, const Vocabulary& vocabulary,
                    Planner& planner) {
  Step step{.target = target,
            .vocabulary = vocabulary,
            .drafters = {},
            .planner = planner,
            .clock = nullptr};
  step.parts.push_back({.sequence = &sequence, .ready = true});
  step.n_ready = 1;
  return step;
}

}  // namespace outrider::testing
