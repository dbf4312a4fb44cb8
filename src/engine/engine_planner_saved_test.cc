// The planner with a target that keeps a whole chain, or only what stood before its root
// (Rollback::kSaved). What was right of a chain is read again, and in front of a chain that takes a
// pass of its own.
#include <gtest/gtest.h>

#include "testing/planned_world.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

// Machines on which guesses pay and re-reading costs little, some, and much of a token.
std::vector<PlanMachine> machines_for_chains() {
  std::vector<PlanMachine> machines = plan_machines();
  machines.push_back(zen4_own_kernels());
  for (const double slope : {0.02, 0.06, 0.15}) {
    machines.push_back({"slope " + std::to_string(slope), [slope](std::int32_t width) {
                          return 20.0 * (1.0 + slope * (width - 1));
                        }});
  }
  return machines;
}

// From one that is never wrong to one that is hardly ever right.
std::vector<std::pair<std::string, RowFunction>> drafts_by_noise() {
  std::vector<std::pair<std::string, RowFunction>> result = drafts();
  for (const float noise : {0.0f, 1.0f, 1.5f, 2.0f, 3.0f}) {
    result.emplace_back("wrong by " + std::to_string(noise),
                        noisy_rows(PlannedWorld::target_rows(), 9, noise));
  }
  return result;
}

double saved_plain_ms(const PlannedSetting& setting, std::uint64_t seed) {
  PlannedWorld world(setting);
  return world.run(1, seed);
}

TEST(Planner, WhatASavedStateReadsAgainMakesNoTextSlowerThanPlainWhateverTheDraft) {
  for (const PlanMachine& machine : machines_for_chains()) {
    for (const double share : {0.05, 0.1, 0.3}) {
      for (const auto& [name, rows] : drafts_by_noise()) {
        const PlannedSetting setting{.machine = machine,
                                     .draft_rows = rows,
                                     .draft_share = share,
                                     .rollback = Rollback::kSaved};
        PlannedWorld world(setting);
        double all_ms = 0.0;
        double all_plain_ms = 0.0;
        for (const std::uint64_t seed : {5, 6, 7}) {
          const double ms = world.run(kAutoWidth, seed);
          const double plain_ms = saved_plain_ms(setting, seed);
          all_ms += ms;
          all_plain_ms += plain_ms;
          // A draft that collapses costs one text as much with any target.
          EXPECT_GT(plain_ms / ms, 0.94)
              << machine.name << ", a draft that is " << name << " and takes " << share
              << " of the target, request " << seed << ": "
              << world.last().speculation.drafters[0].calls << " calls";
        }
        EXPECT_GT(all_plain_ms / all_ms, 0.97)
            << machine.name << ", a draft that is " << name << " and takes " << share;
      }
    }
  }
}

TEST(Planner, WithASavedStateAVeryGoodDraftIsStillFaster) {
  for (const PlanMachine& machine : machines_for_chains()) {
    if (machine.ms(4) > 1.6 * machine.ms(1)) continue;
    const PlannedSetting setting{.machine = machine,
                                 .draft_rows = noisy_rows(PlannedWorld::target_rows(), 9, 0.1f),
                                 .draft_share = 0.05,
                                 .rollback = Rollback::kSaved};
    PlannedWorld world(setting);
    world.run(kAutoWidth, 5);
    EXPECT_GT(saved_plain_ms(setting, 6) / world.run(kAutoWidth, 6), 1.5) << machine.name;
  }
}

TEST(Planner, WithASavedStateSeveralRequestsAreNotSlowerThanPlainOnes) {
  for (const PlanMachine& machine : machines_for_chains()) {
    for (const auto& [name, rows] : drafts_by_noise()) {
      const PlannedSetting setting{
          .machine = machine, .draft_rows = rows, .n_sequences = 4, .rollback = Rollback::kSaved};
      PlannedWorld plain(setting);
      PlannedWorld planned(setting);
      const double ratio = plain.ms_per_token(1, 8, 5) / planned.ms_per_token(kAutoWidth, 8, 5);
      EXPECT_GT(ratio, 0.97) << machine.name << ", a draft that is " << name;
    }
  }
}

// Two passes are no pass of as many tokens.
TEST(Planner, WhatIsReadInFrontOfAChainIsNotedAsNoPassOfAnyWidth) {
  const PlanMachine flat = plan_machines()[0];
  PlannedWorld world({.machine = flat,
                      .draft_rows = noisy_rows(PlannedWorld::target_rows(), 9, 1.5f),
                      .rollback = Rollback::kSaved});
  world.run(4, 5);
  EXPECT_LT(world.last().speculation.accepted, world.last().speculation.drafted);
  for (const CostPoint& point : world.engine().planner().target_cost().points()) {
    EXPECT_NEAR(point.ms, flat.ms(point.width), 1e-6) << point.width;
  }
}

}  // namespace
}  // namespace outrider
