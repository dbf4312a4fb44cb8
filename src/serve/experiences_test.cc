// What one process learned of its drafters, the next one begins with: on made-up machines.
#include "serve/experiences.h"

#include <gtest/gtest.h>

#include "testing/planned_world.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

class KeptInMemory : public ExperienceStore {
 public:
  std::optional<DrafterExperience> load(const std::string& drafter) override {
    const auto found = kept.find(drafter);
    if (found == kept.end()) return std::nullopt;
    return experience_from(found->second);
  }
  Status save(const std::string& drafter, const DrafterExperience& experience) override {
    if (!failure.ok()) return failure;
    kept[drafter] = to_text(experience);
    ++n_saved;
    return Status();
  }
  std::map<std::string, std::string> kept;
  int n_saved = 0;
  Status failure;  // of each save from now on
};

const Drafter& draft_of(PlannedWorld& world) { return *world.engine().drafters()[0]; }

// A process that says some texts. Gives the made-up time of the first.
double run_process(const PlannedSetting& setting, ExperienceStore* store, int n_texts,
                   std::uint64_t seed = 70) {
  PlannedWorld world(setting);
  Experiences experiences(store);
  experiences.recall(world.engine(), draft_of(world), "the draft");
  double first_ms = 0.0;
  for (int i = 0; i < n_texts; ++i) {
    const double ms = world.run(kAutoWidth, seed + static_cast<std::uint64_t>(i));
    if (i == 0) first_ms = ms;
  }
  EXPECT_TRUE(experiences.keep(world.engine()).ok());
  return first_ms;
}

// Good drafts and useless ones, on all machines: knowing is never worse than finding out, and
// better somewhere.
TEST(Experiences, AFirstTextIsSaidFasterWithWhatAnotherProcessLearned) {
  double best = 1.0;
  for (const PlanMachine& machine : plan_machines()) {
    for (const bool good : {true, false}) {
      const PlannedSetting setting{
          .machine = machine,
          .draft_rows = good ? good_draft() : random_rows(kVocab, 99, 3.0f),
          .draft_share = 0.15};
      KeptInMemory learned;
      run_process(setting, &learned, 4);
      ASSERT_EQ(learned.kept.size(), 1U);
      // Several first texts: one says little (0.9 to 1.14 of each other).
      double fresh = 0.0;
      double knowing = 0.0;
      for (std::uint64_t seed = 70; seed < 78; ++seed) {
        fresh += run_process(setting, nullptr, 1, seed);
        KeptInMemory store = learned;
        knowing += run_process(setting, &store, 1, seed);
      }
      EXPECT_LT(knowing, 1.03 * fresh) << machine.name << (good ? ", good" : ", useless");
      best = std::min(best, knowing / fresh);
    }
  }
  EXPECT_LT(best, 0.99);
}

// What a drafter itself has learned, too: how sharp its guesses should be.
TEST(Experiences, ADraftersOwnNumbersAreAmongThem) {
  const PlannedSetting setting{.machine = plan_machines()[0], .draft_rows = good_draft()};
  KeptInMemory store;
  run_process(setting, &store, 3);
  const std::vector<double> own = store.load("the draft")->own;
  ASSERT_EQ(own.size(), 2U);
  EXPECT_GT(own[1], 100.0);
  PlannedWorld world(setting);
  Experiences(&store).recall(world.engine(), draft_of(world), "the draft");
  EXPECT_EQ(draft_of(world).learned(), own);
}

TEST(Experiences, WithoutAStoreOrANameNothingIsKept) {
  const PlannedSetting setting{.machine = plan_machines()[0], .draft_rows = good_draft()};
  const double alone = run_process(setting, nullptr, 1);
  EXPECT_GT(alone, 0.0);
  KeptInMemory store;
  PlannedWorld world(setting);
  Experiences experiences(&store);
  experiences.recall(world.engine(), draft_of(world), "");
  world.run(kAutoWidth, 70);
  EXPECT_TRUE(experiences.keep(world.engine()).ok());
  EXPECT_TRUE(store.kept.empty());
}

TEST(Experiences, IsKeptWhereSomethingWasSaidSince) {
  const PlannedSetting setting{.machine = plan_machines()[0], .draft_rows = good_draft()};
  KeptInMemory store;
  PlannedWorld world(setting);
  Experiences experiences(&store);
  experiences.recall(world.engine(), draft_of(world), "the draft");
  EXPECT_TRUE(experiences.keep(world.engine()).ok());
  EXPECT_EQ(store.n_saved, 0) << "nothing was said";
  world.run(kAutoWidth, 70);
  EXPECT_TRUE(experiences.keep(world.engine()).ok());
  EXPECT_EQ(store.n_saved, 1);
  EXPECT_TRUE(experiences.keep(world.engine()).ok());
  EXPECT_EQ(store.n_saved, 1) << "nothing new";
  for (int i = 0; i < 8; ++i) {
    world.run(kAutoWidth, 71 + static_cast<std::uint64_t>(i));
    EXPECT_TRUE(experiences.keep_now_and_then(world.engine()).ok());
  }
  EXPECT_GT(store.n_saved, 1);
}

TEST(Experiences, WhatCannotBeKeptIsSaid) {
  const PlannedSetting setting{.machine = plan_machines()[0], .draft_rows = good_draft()};
  KeptInMemory store;
  store.failure = internal_error("the disk is gone");
  PlannedWorld world(setting);
  Experiences experiences(&store);
  experiences.recall(world.engine(), draft_of(world), "the draft");
  EXPECT_TRUE(experiences.keep(world.engine()).ok()) << "nothing was said";
  world.run(kAutoWidth, 70);
  EXPECT_EQ(experiences.keep(world.engine()).message(), "the disk is gone");
  EXPECT_TRUE(store.kept.empty());
}

}  // namespace
}  // namespace outrider
