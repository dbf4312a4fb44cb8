// A trained head where the planner chooses, on a simulated machine with a simulated clock.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "engine/engine.h"
#include "testing/fake_engine.h"
#include "testing/fake_heads.h"
#include "testing/planned_world.h"

namespace outrider::testing {

struct PlannedTexts {
  SpeculationStats first;
  SpeculationStats later;
};

// Of two texts of 300 tokens, one after the other. A pass of the head takes `head_share` of the
// target's single token, whatever it guesses. The first text is checked to be plain decoding's.
// REQUIRES: of `pair`, one sequence and a context of kPlannedContext
template <typename Pair>
PlannedTexts planned_texts(Pair& pair, double head_share) {
  const PlanMachine machine = plan_machines()[0];
  double now_ms = 0.0;
  const auto on_head_pass = [&pair](const std::function<void(std::int64_t)>& hook) {
    if constexpr (requires { pair.head.on_guess(hook); }) {
      pair.head.on_guess(hook);
    } else {
      pair.head.on_evaluated(hook);
    }
  };
  pair.target.on_evaluated([&](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
  on_head_pass([&](std::int64_t) { now_ms += head_share * machine.ms(1); });
  Engine engine(pair.target, pair.vocabulary, {&pair.drafter},
                {.now_ms = [&now_ms] { return now_ms; }});
  engine.planner().set_target_cost(measured_curve(machine));
  const Completion first = run(engine, pair, request({1, 2}, 1.0f, 5, 300, kAutoWidth));
  EXPECT_EQ(first.tokens, reference(pair.rows, {1, 2}, 1.0f, 5, 300));
  const Completion later = run(engine, pair, request({1, 2}, 1.0f, 6, 300, kAutoWidth));
  pair.target.on_evaluated(nullptr);
  on_head_pass(nullptr);
  return {.first = first.speculation, .later = later.speculation};
}

}  // namespace outrider::testing
