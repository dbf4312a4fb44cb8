// A process that is stopped for a while, a laptop that sleeps, a draft whose pages come from the
// disk: one pass takes seconds. A good draft is asked again soon, in this process and in later
// ones.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "testing/planned_world.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

constexpr double kDraftShare = 0.1;  // of a single token, for one of the draft's

// The draft's passes, one of which takes `pause_ms` longer: the `at`th of those that read more than
// `above` tokens.
std::function<double(std::int64_t)> passes_with_a_pause(const PlanMachine& machine, double pause_ms,
                                                        std::int64_t above, int at) {
  const double pause = pause_ms / machine.ms(1);
  const auto seen = std::make_shared<int>(0);
  return [=](std::int64_t tokens) {
    const double pass = kDraftShare * (1.0 + 0.2 * static_cast<double>(tokens - 1));
    return tokens > above && ++*seen == at ? pass + pause : pass;
  };
}

// A text behind a prompt of `n` tokens, another one for each seed.
Completion say(Engine& engine, std::int64_t n, std::uint64_t seed) {
  std::vector<Token> prompt;
  for (std::int64_t i = 0; i < n; ++i) {
    prompt.push_back(
        static_cast<Token>(mix64(seed * 1000 + static_cast<std::uint64_t>(i)) % kVocab));
  }
  const RequestId id = *engine.add(request(std::move(prompt), 1.0f, seed, 250, kAutoWidth));
  while (engine.busy()) engine.step();
  return *engine.take(id);
}

TEST(Planner, APauseInADraftsPassSuspendsAGoodDraftForOneTextAtMost) {
  const PlanMachine machine = plan_machines()[0];
  const auto ms_of_ten = [&machine](double pause_ms, int at) {
    PlannedWorld world({.machine = machine,
                        .draft_rows = good_draft(),
                        .draft_passes = passes_with_a_pause(machine, pause_ms, 0, at)});
    double ms = -pause_ms;
    for (std::uint64_t seed = 0; seed < 10; ++seed) ms += world.run(kAutoWidth, 5 + seed);
    return ms;
  };
  const double quiet_ms = ms_of_ten(0.0, 1);
  for (const int at : {1, 2, 100, 101, 500}) {
    for (const double pause_ms : {2000.0, 20000.0, 60000.0, 3600000.0}) {
      EXPECT_LT(ms_of_ten(pause_ms, at), 1.1 * quiet_ms) << pause_ms << " ms, pass " << at;
    }
  }
}

TEST(Planner, APauseWhileADraftReadsKeepsItFromReadingInNoLaterText) {
  const PlanMachine machine = plan_machines()[0];
  for (const int at : {1, 2, 4}) {  // which prompt's reading
    for (const double pause_ms : {2000.0, 20000.0, 60000.0}) {
      DrafterExperience known;
      for (int process = 0; process < 3; ++process) {
        PlannedWorld world(
            {.machine = machine,
             .draft_rows = good_draft(),
             .draft_passes = passes_with_a_pause(machine, process == 0 ? pause_ms : 0.0, 100, at)});
        if (process > 0) world.engine().planner().recall(0, known);
        for (std::uint64_t text = 0; text < 6; ++text) {
          const Completion said = say(world.engine(), 300, 7 + text);
          if (process == 0 && static_cast<int>(text) <= at) continue;
          EXPECT_GT(said.speculation.accepted, 60)
              << pause_ms << " ms, reading " << at << ", process " << process << ", text " << text;
        }
        known = world.engine().planner().experience(0);
      }
    }
  }
}

// Where nothing was measured at load, the first passes say what passes of their width take.
TEST(Planner, APauseInTheFirstWidePassDoesNotEndSpeculation) {
  const auto ms_of_ten = [](double pause_ms, int at) {
    const PlanMachine machine = plan_machines()[0];
    const auto seen = std::make_shared<int>(0);
    const auto paused = [=](std::int32_t width) {
      return machine.ms(width) + (width > 1 && ++*seen == at ? pause_ms : 0.0);
    };
    PlannedWorld world(
        {.machine = {"paused", paused}, .draft_rows = good_draft(), .measured = false});
    double ms = 0.0;
    for (std::uint64_t text = 0; text < 11; ++text) {
      const double one_ms = world.run(kAutoWidth, 5 + text);
      if (text > 0) ms += one_ms;
    }
    return ms;
  };
  const double quiet_ms = ms_of_ten(0.0, 2);
  for (const int at : {2, 3, 4}) {  // the first is the prompt's
    EXPECT_LT(ms_of_ten(20000.0, at), 1.1 * quiet_ms) << "pass " << at;
  }
}

// What takes long again and again is slow, not held up.
TEST(Planner, ADraftThatBecomesSlowForGoodIsGivenUp) {
  const PlanMachine machine = plan_machines()[0];
  const auto passes = std::make_shared<int>(0);
  PlannedWorld world({.machine = machine,
                      .draft_rows = good_draft(),
                      .draft_passes = [passes](std::int64_t tokens) {
                        const double batch = 1.0 + 0.2 * static_cast<double>(tokens - 1);
                        return (++*passes > 300 ? 30.0 : 1.0) * kDraftShare * batch;
                      }});
  PlannedWorld plain({.machine = machine, .draft_rows = good_draft()});
  const double plain_ms = plain.run(1, 5);
  while (*passes <= 300) world.run(kAutoWidth, 5);
  double ms = 0.0;
  for (int text = 0; text < 10; ++text) ms += world.run(kAutoWidth, 5);
  EXPECT_LT(ms, 1.06 * 10.0 * plain_ms);
}

// A good draft with a context of 400 tokens, which has proved itself.
struct ShortDraft {
  explicit ShortDraft(std::int32_t n_sequences)
      : target(testing::capabilities(n_sequences, kPlannedContext), PlannedWorld::target_rows()),
        draft(testing::capabilities(n_sequences, 400), good_draft()) {
    target.on_evaluated([this](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
    draft.on_evaluated([this](std::int64_t n) {
      now_ms += kDraftShare * machine.ms(1) * (1.0 + 0.2 * static_cast<double>(n - 1));
    });
    engine.planner().set_target_cost(measured_curve(machine));
    for (std::uint64_t text = 0; text < 3; ++text) say(engine, 100, 7 + text);
  }

  // What the draft's reading of 1,000 tokens takes, as far as is known.
  double reading_ms() {
    return engine.planner().account(0).reading_ms(1000, engine.planner().target_cost());
  }

  const PlanMachine machine = plan_machines()[0];
  double now_ms = 0.0;
  FakeModel target;
  FakeModel draft;
  const FakeVocabulary vocabulary{kVocab};
  DraftModelDrafter drafter{draft, kVocab, {}};
  Engine engine{target, vocabulary, {&drafter}, {.now_ms = [this] { return now_ms; }}};
};

// A draft model whose context is full reads nothing, however often it is asked.
TEST(Planner, ReadingThatADraftCannotDoIsNotBooked) {
  ShortDraft world(1);
  Engine& engine = world.engine;
  const double before_ms = engine.planner().account(0).invested_ms();
  say(engine, 380, 17);  // is longer than the draft's context after 20 of 250 tokens
  EXPECT_LE(engine.planner().account(0).invested_ms(), before_ms + world.reading_ms());
}

// Nor is it taken for free, or a pass for one as a pass for two, where another text is drafted for
// beside it.
TEST(Planner, ATextThatADraftCannotReadChangesNoCostsBesideAnother) {
  ShortDraft world(2);
  Engine& engine = world.engine;
  const double before_ms = world.reading_ms();
  ASSERT_GT(before_ms, 0.0);
  const std::vector<Token> full(420, 3);
  ASSERT_TRUE(engine.add(request(full, 1.0f, 5, 150, kAutoWidth)).ok());
  ASSERT_TRUE(engine.add(request({1, 2}, 1.0f, 6, 150, kAutoWidth)).ok());
  run_all(engine, &world.drafter);
  EXPECT_GT(world.reading_ms(), 0.5 * before_ms);
}

}  // namespace
}  // namespace outrider
