// The choice against all subsets, on made-up machines.
#include "plan/outlook.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "base/random.h"
#include "testing/chi_square.h"
#include "testing/plan_machines.h"
#include "tree/token_tree.h"

namespace outrider {
namespace {

using testing::PlanMachine;

struct World {
  std::vector<TokenTree> trees;
  std::vector<float> chances;  // of all nodes, falling
};

World random_world(std::uint64_t& state, std::int32_t n_trees, std::int32_t n_nodes) {
  World world;
  for (std::int32_t i = 0; i < n_trees; ++i) world.trees.emplace_back(0);
  for (std::int32_t i = 0; i < n_nodes; ++i) {
    TokenTree& tree = world.trees[mix64(++state) % world.trees.size()];
    const NodeId parent =
        static_cast<NodeId>(mix64(++state) % static_cast<std::uint64_t>(tree.size()));
    const float factor = static_cast<float>(mix64(++state) % 1000) / 1000.0f;
    tree.add(parent, 1 + i, tree.node(parent).chance * factor, 1);
  }
  for (const TokenTree& tree : world.trees) {
    for (NodeId id = 1; id < tree.size(); ++id) world.chances.push_back(tree.node(id).chance);
  }
  std::sort(world.chances.begin(), world.chances.end(), std::greater<float>());
  return world;
}

// Every way to keep some nodes with their parents, and the best tokens per millisecond of all.
double best_of_all_subsets(const World& world, const PlanMachine& machine, std::int32_t most,
                           double spent_ms) {
  std::vector<std::pair<const TokenTree*, NodeId>> nodes;
  for (const TokenTree& tree : world.trees) {
    for (NodeId id = 1; id < tree.size(); ++id) nodes.emplace_back(&tree, id);
  }
  const std::int32_t n_trees = static_cast<std::int32_t>(world.trees.size());
  double best = 0.0;
  for (std::uint32_t mask = 0; mask < (1U << nodes.size()); ++mask) {
    double tokens = n_trees;
    std::int32_t n = 0;
    bool whole = true;
    for (std::size_t i = 0; i < nodes.size() && whole; ++i) {
      if (((mask >> i) & 1) == 0) continue;
      const auto& [tree, id] = nodes[i];
      const NodeId parent = tree->node(id).parent;
      for (std::size_t j = 0; j < nodes.size(); ++j) {
        if (nodes[j].first == tree && nodes[j].second == parent) whole &= ((mask >> j) & 1) != 0;
      }
      tokens += static_cast<double>(tree->node(id).chance);
      ++n;
    }
    if (!whole || n > most) continue;
    double ms = std::numeric_limits<double>::max();
    for (std::int32_t width = n; width <= most; ++width) {  // filled up, or not
      ms = std::min(ms, machine.ms(n_trees + width));
    }
    best = std::max(best, tokens / (ms + spent_ms));
  }
  return best;
}

CostCurve curve_of(const PlanMachine& machine) {
  std::vector<CostPoint> points;
  for (std::int32_t width = 1; width <= 24; ++width) {
    points.push_back({.width = width, .ms = machine.ms(width)});
  }
  return CostCurve(points);
}

TEST(Outlook, IsTheBestOfAllSubsetsOnEveryMachine) {
  std::uint64_t state = testing::test_seed(11);
  for (const PlanMachine& machine : testing::plan_machines()) {
    const CostCurve curve = curve_of(machine);
    for (int round = 0; round < 60; ++round) {
      const std::int32_t n_trees = 1 + static_cast<std::int32_t>(mix64(++state) % 3);
      const World world =
          random_world(state, n_trees, static_cast<std::int32_t>(mix64(++state) % 10));
      const std::int32_t most = static_cast<std::int32_t>(mix64(++state) % 12);
      const double spent = machine.ms(1) * static_cast<double>(mix64(++state) % 100) / 100.0;
      const StepCosts costs(curve, n_trees, n_trees, most);
      const Outlook chosen = best_outlook({world.chances, n_trees, &costs, spent});
      const double plain = n_trees / (costs.ms(0) + spent);
      double best = best_of_all_subsets(world, machine, most, spent);
      if (n_trees > 1 && best <= plain * kSharedBetter) {
        best = plain;
        EXPECT_EQ(chosen.nodes, 0);
      }
      EXPECT_NEAR(chosen.rate(), best, 1e-6 * best)
          << machine.name << ", " << world.chances.size() << " nodes, at most " << most;
    }
  }
}

TEST(Outlook, OfEquallyGoodStepsTheSmallest) {
  const std::vector<CostPoint> points = {{.width = 1, .ms = 10.0}, {.width = 2, .ms = 15.0}};
  const CostCurve curve(points);
  const std::vector<float> half = {0.5f};
  const StepCosts costs(curve, 1, 1, 1);
  EXPECT_EQ(best_outlook({half, 1, &costs, 0.0}).nodes, 0);
  const std::vector<float> more = {0.51f};
  EXPECT_EQ(best_outlook({more, 1, &costs, 0.0}).nodes, 1);
}

TEST(Outlook, ACheaperWiderStepIsFilledUpOnlyWhereItWasMeasured) {
  const std::vector<CostPoint> points = {
      {.width = 1, .ms = 72.0}, {.width = 2, .ms = 107.0}, {.width = 4, .ms = 94.0}};
  const StepCosts costs(CostCurve(points), 1, 1, 5);
  EXPECT_EQ(costs.filled(1), 3) << "two tokens take longer than four";
  EXPECT_NEAR(costs.ms(1), 94.0, 1e-9);
  EXPECT_EQ(costs.filled(2), 3) << "nor can three be relied on to take less";
  EXPECT_EQ(costs.filled(4), 4) << "nothing beyond was measured";
  EXPECT_EQ(costs.filled(0), 0);
}

Prospect prospect(double chance, double pass_ms) {
  return {.tip_chance = 1.0f, .pass_ms = pass_ms, .prediction = [chance](std::int32_t) {
            return chance;
          }};
}

TEST(Outlook, MoreIsDraftedOnlyWhereItPays) {
  for (const PlanMachine& machine : testing::plan_machines()) {
    const StepCosts costs(curve_of(machine), 1, 1, 16);
    EXPECT_FALSE(more_guesses_pay(prospect(0.01, machine.ms(1) * 0.1), {{}, 1, &costs, 0.0}))
        << machine.name;
    EXPECT_FALSE(more_guesses_pay(prospect(0.9, machine.ms(1) * 1.2), {{}, 1, &costs, 0.0}))
        << machine.name << ": as dear as the target";
    if (machine.ms(4) < 2.5 * machine.ms(1)) {
      EXPECT_TRUE(more_guesses_pay(prospect(0.95, machine.ms(1) * 0.05), {{}, 1, &costs, 0.0}))
          << machine.name;
    }
  }
}

// One pass that is dearer than a token, for a block of guesses.
TEST(Outlook, APassThatGivesAllGuessesIsPaidForOnce) {
  for (const PlanMachine& machine : testing::plan_machines()) {
    if (machine.ms(8) > 2.5 * machine.ms(1)) continue;
    const StepCosts costs(curve_of(machine), 1, 1, 16);
    Prospect block = prospect(0.9, machine.ms(1) * 1.2);
    EXPECT_FALSE(more_guesses_pay(block, {{}, 1, &costs, 0.0})) << machine.name;
    block.at_once = true;
    EXPECT_TRUE(more_guesses_pay(block, {{}, 1, &costs, 0.0})) << machine.name;
    block.pass_ms = machine.ms(1) * 8.0;
    EXPECT_FALSE(more_guesses_pay(block, {{}, 1, &costs, 0.0})) << machine.name;
  }
}

// A slow step does not make a token worth more: not guessed now, it comes in a usual step.
TEST(Outlook, APromptInTheBatchMakesNoGuessWorthMore) {
  const std::vector<CostPoint> points = {
      {.width = 1, .ms = 30.0}, {.width = 8, .ms = 65.0}, {.width = 16, .ms = 105.0}};
  const StepCosts costs(CostCurve(points), 101, 1, 8);
  EXPECT_NEAR(costs.took_ms(540.0, 101), 540.0 - (105.0 + 85 * 5.0 - 30.0), 1e-9);
  EXPECT_NEAR(costs.ms(0), 30.0, 1e-9);
  EXPECT_NEAR(costs.ms(2), 40.0, 1e-9);
  const std::vector<float> unlikely = {0.15f, 0.1f};
  EXPECT_EQ(best_outlook({unlikely, 1, &costs, 0.0}).nodes, 0);
  const std::vector<float> likely = {0.5f, 0.1f};
  EXPECT_EQ(best_outlook({likely, 1, &costs, 0.0}).nodes, 1);
}

// One wide step among plain ones makes two graphs be built, one among others of other widths only
// its own.
TEST(Outlook, AStepOfAnotherWidthTakesTheTimeOfItsGraphs) {
  const std::vector<CostPoint> points = {
      {.width = 1, .ms = 30.0}, {.width = 2, .ms = 32.0}, {.width = 3, .ms = 34.0}};
  CostCurve curve(points, 4.0);
  curve.note(1, 34.0);
  const StepCosts among_plain(curve, 1, 1, 2);
  EXPECT_NEAR(among_plain.ms(0), 30.0, 1e-9);
  EXPECT_NEAR(among_plain.ms(1), 40.0, 1e-9);
  EXPECT_NEAR(among_plain.took_ms(30.0, 1), 30.0, 1e-9);
  EXPECT_NEAR(among_plain.took_ms(36.0, 2), 40.0, 1e-9) << "the plain one behind it is to come";
  const std::vector<float> chain = {0.3f};
  EXPECT_EQ(best_outlook({chain, 1, &among_plain, 0.0}).nodes, 0);

  curve.note(3, 38.0);
  const StepCosts among_wide(curve, 1, 1, 2);
  EXPECT_NEAR(among_wide.ms(1), 34.0, 1e-9);
  EXPECT_EQ(among_wide.filled(1), 2) << "that graph is there";
  EXPECT_NEAR(among_wide.ms(2), 34.0, 1e-9);
  EXPECT_NEAR(among_wide.took_ms(34.0, 1), 30.0, 1e-9);
  EXPECT_NEAR(among_wide.took_ms(36.0, 2), 36.0, 1e-9);
  EXPECT_NEAR(among_wide.took_ms(34.0, 3), 34.0, 1e-9);
  EXPECT_EQ(best_outlook({chain, 1, &among_wide, 0.0}).nodes, 1);

  const StepCosts beside_a_prompt(curve, 9, 1, 2);
  EXPECT_NEAR(beside_a_prompt.ms(1) - beside_a_prompt.ms(0), 2.0, 1e-9);
}

// A pass that was held up is noted as dearer than a wider one: no step takes less than its own
// tokens.
TEST(Outlook, APromptThatSeemsDearMakesNoStepFree) {
  const std::vector<CostPoint> points = {
      {.width = 1, .ms = 65.0}, {.width = 8, .ms = 140.0}, {.width = 12, .ms = 72.0}};
  const StepCosts costs(CostCurve(points), 8, 1, 8);
  for (int nodes = 0; nodes <= 8; ++nodes) EXPECT_GE(costs.ms(nodes), 65.0 - 1e-9) << nodes;
}

// A chain of which some is wrong is read again, its root and what was right.
TEST(Outlook, AGuessCostsWhatIsReadAgainWhereItIsWrong) {
  std::vector<CostPoint> points;
  for (std::int32_t width = 1; width <= 6; ++width) {
    points.push_back({.width = width, .ms = 8.0 + 2.0 * width});
  }
  const StepCosts costs(CostCurve(points), 1, 1, 4, /*reads_again=*/true);
  EXPECT_NEAR(costs.again_ms(3), 6.0, 1e-9);
  const std::vector<float> chain = {0.75f, 0.5f};
  const Outlook both = best_outlook({chain, 1, &costs, 1.0});
  EXPECT_EQ(both.nodes, 2);
  EXPECT_NEAR(both.ms, 14.0 + 1.0 + 0.25 * 2.0 + 0.25 * 4.0, 1e-6);
  // 1.25 tokens for 12 ms are better than one for 10, for 12 + 0.75 * 2 they are not.
  const std::vector<float> unlikely = {0.25f};
  EXPECT_EQ(best_outlook({unlikely, 1, &costs, 0.0}).nodes, 0);
  const StepCosts as_usual(CostCurve(points), 1, 1, 4);
  EXPECT_EQ(best_outlook({unlikely, 1, &as_usual, 0.0}).nodes, 1);
  EXPECT_EQ(as_usual.again_ms(3), 0.0);
  // Two requests with chains that are alike.
  const StepCosts shared(CostCurve(points), 2, 2, 4, /*reads_again=*/true);
  const std::vector<float> four = {0.9f, 0.9f, 0.8f, 0.8f};
  EXPECT_NEAR(best_outlook({four, 2, &shared, 0.0}).ms, 20.0 + 2 * (0.1 * 2.0 + 0.1 * 4.0), 1e-5);
}

// What only fills a step is wrong, so its chain would be read again.
TEST(Outlook, NothingIsFilledUpWhereWrongChainsAreReadAgain) {
  const std::vector<CostPoint> points = {
      {.width = 1, .ms = 72.0}, {.width = 2, .ms = 107.0}, {.width = 4, .ms = 94.0}};
  const StepCosts costs(CostCurve(points), 1, 1, 5, /*reads_again=*/true);
  for (std::int32_t nodes = 0; nodes <= 5; ++nodes) EXPECT_EQ(costs.filled(nodes), nodes);
  EXPECT_NEAR(costs.ms(1), 107.0, 1e-9);
}

// Two tokens take longer than four: the first guess alone would not pay.
TEST(Outlook, LooksBeyondADearWidth) {
  const std::vector<CostPoint> points = {{.width = 1, .ms = 72.0},
                                         {.width = 2, .ms = 140.0},
                                         {.width = 3, .ms = 140.0},
                                         {.width = 4, .ms = 141.0}};
  const StepCosts costs(CostCurve(points), 1, 1, 3);
  EXPECT_TRUE(more_guesses_pay(prospect(0.8, 5.0), {{}, 1, &costs, 0.0}));
}

}  // namespace
}  // namespace outrider
