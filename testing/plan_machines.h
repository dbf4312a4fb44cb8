// Simulated machines for the planner: what a pass of so many tokens takes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace outrider::testing {

struct PlanMachine {
  std::string name;
  std::function<double(std::int32_t)> ms;  // by the number of tokens, >= 1
};

// Flat (many tokens for the price of one), linear (none), tiled (as measured on a Zen 4 with Q4_0
// weights, where four tokens take less than two), like a GPU (flat, then stairs), saw-toothed, and
// steep at once.
std::vector<PlanMachine> plan_machines();

// As measured on a Zen 4 with Q4_0 weights and our kernels (docs/benchmarks-steps.md has later
// figures): a step of four tokens takes 1.26 single ones, and beyond, where the products take the
// time, each token 0.2.
PlanMachine zen4_own_kernels();

}  // namespace outrider::testing
