// What the planner charges, and to whom, on made-up machines with a made-up clock.
#include <gtest/gtest.h>

#include "testing/planned_world.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

// A dear draft model beside a cheap one that is as good: it is not asked for what is guessed
// already.
TEST(Planner, ADearDraftBesideACheapOneIsNotSlowerThanTheCheapOneAlone) {
  for (const PlanMachine& machine : plan_machines()) {
    const auto ms_of = [&machine](bool with_dear) {
      double now_ms = 0.0;
      FakeModel target(testing::capabilities(1, kPlannedContext), PlannedWorld::target_rows());
      FakeModel cheap(testing::capabilities(1, kPlannedContext), good_draft());
      FakeModel dear(testing::capabilities(1, kPlannedContext), good_draft());
      target.on_evaluated([&](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
      cheap.on_evaluated([&](std::int64_t n) { now_ms += 0.01 * static_cast<double>(n); });
      dear.on_evaluated([&](std::int64_t n) {
        now_ms += 0.2 * machine.ms(1) * (1.0 + 0.2 * static_cast<double>(n - 1));
      });
      const FakeVocabulary vocabulary(kVocab);
      // Two that learned apart how to guess would guess differently.
      DraftModelDrafter dear_drafter(dear, kVocab, {}, /*learns=*/false);
      DraftModelDrafter cheap_drafter(cheap, kVocab, {}, /*learns=*/false);
      std::vector<Drafter*> drafters = {&cheap_drafter};
      if (with_dear) drafters.insert(drafters.begin(), &dear_drafter);
      Engine engine(target, vocabulary, drafters, {.now_ms = [&] { return now_ms; }});
      engine.planner().set_target_cost(measured_curve(machine));
      for (const std::uint64_t seed : {5, 6, 7}) {
        const RequestId id = *engine.add(request({1, 2}, 1.0f, seed, kPlannedTokens, kAutoWidth));
        while (engine.busy()) engine.step();
        EXPECT_EQ(engine.take(id)->tokens,
                  reference(PlannedWorld::target_rows(), {1, 2}, 1.0f, seed, kPlannedTokens));
      }
      return now_ms;
    };
    const double ratio = ms_of(false) / ms_of(true);
    EXPECT_GT(ratio, 0.965) << machine.name;  // 0.948 where it is
  }
}

// A request of a fixed width drafts in each step, whatever that costs; the others are not
// charged for it.
TEST(Planner, AFixedWidthIsNotChargedToThePlannersAccounts) {
  const PlanMachine machine = plan_machines()[0];
  PlannedSetting setting{
      .machine = machine, .draft_rows = good_draft(), .draft_share = 0.08, .n_sequences = 4};
  PlannedWorld world(setting);
  world.run_together({4, 4, 4, kAutoWidth}, 5);
  EXPECT_FALSE(world.engine().planner().account(0).suspended());
  EXPECT_GT(world.last().speculation.accepted, 100) << "the last one's";
}

// One that guesses, and has something to say of it: a file of it was taken away.
TEST(Planner, ADrafterWithANoteIsChargedLikeOneWithout) {
  const PlanMachine machine = plan_machines()[0];
  const std::vector<Token> said =
      reference(PlannedWorld::target_rows(), {1, 2}, 1.0f, 5, kPlannedTokens);
  std::vector<Token> text = {1, 2};
  text.insert(text.end(), said.begin(), said.end());
  const Script all_wrong = prophet(text, 3, 1, kVocab);
  struct Charged {
    std::int64_t calls = 0;
    double pass_ms = 0.0;
  };
  const auto run = [&](const std::string& note) {
    double now_ms = 0.0;
    FakeModel target(testing::capabilities(1, kPlannedContext), PlannedWorld::target_rows());
    target.on_evaluated([&](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
    ScriptedDrafter drafter([&](DraftRequest& request) {
      now_ms += 0.1 * machine.ms(1);
      return all_wrong(request);
    });
    drafter.noted = note;
    const FakeVocabulary vocabulary(kVocab);
    Engine engine(target, vocabulary, {&drafter}, {.now_ms = [&] { return now_ms; }});
    engine.planner().set_target_cost(measured_curve(machine));
    const RequestId id = *engine.add(request({1, 2}, 1.0f, 5, kPlannedTokens, kAutoWidth));
    while (engine.busy()) engine.step();
    const Completion got = *engine.take(id);
    EXPECT_EQ(got.tokens, said);
    EXPECT_EQ(got.speculation.reason, note);
    return Charged{.calls = got.speculation.drafters[0].calls,
                   .pass_ms = engine.planner().pass_ms(0, true, 1)};
  };
  const Charged without = run("");
  EXPECT_GT(without.calls, 0);
  EXPECT_LT(without.calls, kPlannedTokens / 2) << "it is suspended";
  const Charged with_note = run("its file was taken away");
  EXPECT_EQ(with_note.calls, without.calls);
  EXPECT_EQ(with_note.pass_ms, without.pass_ms);
}

// Always wrong, and sure that it is right. It lost the time of four tokens, as one may that is
// right at times, with one guess a step.
TEST(Planner, ADrafterThatWasNeverRightIsSuspendedBehindTheTimeOfTwoTokens) {
  const PlanMachine machine = zen4_own_kernels();
  const double token_ms = machine.ms(1);
  const std::vector<Token> said =
      reference(PlannedWorld::target_rows(), {1, 2}, 1.0f, 5, kPlannedTokens);
  std::vector<Token> text = {1, 2};
  text.insert(text.end(), said.begin(), said.end());
  const Script never_right = prophet(text, 3, 1, kVocab);
  double now_ms = 0.0;
  FakeModel target(testing::capabilities(1, kPlannedContext), PlannedWorld::target_rows());
  target.on_evaluated([&](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
  ScriptedDrafter drafter([&](DraftRequest& request) {
    now_ms += 0.16 * token_ms;
    return never_right(request);
  });
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {&drafter}, {.now_ms = [&] { return now_ms; }});
  engine.planner().set_target_cost(measured_curve(machine));
  engine.planner().expect_passes(0, 0.16);
  ASSERT_TRUE(engine.add(request({1, 2}, 1.0f, 5, kPlannedTokens, kAutoWidth)).ok());
  int steps = 0;
  while (engine.busy() && !engine.planner().account(0).suspended()) {
    engine.step();
    ++steps;
  }
  ASSERT_TRUE(engine.busy());
  const double lost = now_ms / token_ms - steps;  // each step said one token
  EXPECT_GT(lost, 1.9);
  EXPECT_LT(lost, 2.6);
}

// A text that begins as an earlier one did is not new to a draft model that has read it.
TEST(Planner, ACachedPromptNeedsNoReading) {
  const PlanMachine machine = plan_machines()[0];
  // Reading is dear here, so that a long text is not read for the rest of it. Steps say more than
  // 16 tokens, of which the draft model has seen nearly all: they are its own guesses.
  const auto passes = [](std::int64_t n) { return (n > 16 ? 0.3 : 0.05) * static_cast<double>(n); };
  PlannedWorld world({.machine = machine,
                      .draft_rows = good_draft(),
                      .reuse_prefix = true,
                      .draft_passes = passes});
  Engine& engine = world.engine();
  const auto said = [&](std::vector<Token> prompt) {
    const RequestId id = *engine.add(request(std::move(prompt), 1.0f, 5, 250, kAutoWidth));
    while (engine.busy()) engine.step();
    return *engine.take(id);
  };
  std::vector<Token> text;
  for (std::uint64_t i = 0; i < 200; ++i) text.push_back(static_cast<Token>(mix64(i) % kVocab));
  for (int turn = 0; turn < 6; ++turn) {
    const std::int64_t length = static_cast<std::int64_t>(text.size());
    const Completion next = said(text);
    if (turn > 0) {
      EXPECT_GT(next.cached_tokens, length - 10);
    }
    EXPECT_GT(next.speculation.accepted, 40) << "turn " << turn;
    text.insert(text.end(), next.tokens.begin(), next.tokens.end());
  }
  // Nor is reading taken for cheap because nothing had to be read.
  EXPECT_GT(engine.planner().account(0).reading_ms(100, engine.planner().target_cost()),
            20.0 * machine.ms(1));
}

// What a shift leaves of a text is read again: that is reading, not guessing.
TEST(Planner, AShiftedTextIsReadAgainAndItsReadingIsNotedAsSuch) {
  const PlanMachine machine = plan_machines()[0];
  double now_ms = 0.0;
  FakeModel target(testing::capabilities(1, 256), PlannedWorld::target_rows());
  FakeModel draft(testing::capabilities(1, 256), good_draft());
  target.on_evaluated([&](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
  draft.on_evaluated(
      [&](std::int64_t n) { now_ms += 0.04 * machine.ms(1) * static_cast<double>(n); });
  const FakeVocabulary vocabulary(kVocab);
  DraftModelDrafter drafter(draft, kVocab, {});
  Engine engine(target, vocabulary, {&drafter}, {.now_ms = [&] { return now_ms; }});
  engine.planner().set_target_cost(measured_curve(machine));
  Request r = request({1, 2}, 1.0f, 5, 1000, kAutoWidth);
  r.shift_keep = 0;
  const RequestId id = *engine.add(std::move(r));
  while (engine.busy()) {
    engine.step();
    EXPECT_FALSE(engine.planner().account(0).suspended());
  }
  const Completion got = *engine.take(id);
  EXPECT_GE(got.shifts, 5);
  EXPECT_GT(got.speculation.accepted, 500);
  const DrafterAccount& account = engine.planner().account(0);
  EXPECT_NEAR(account.reading_ms(100, engine.planner().target_cost()), 4.0 * machine.ms(1),
              machine.ms(1));
  EXPECT_LT(engine.planner().pass_ms(0, true, 1), 0.1 * machine.ms(1));
}

// A draft model reads a long prompt for the text behind it: not where texts end after a few tokens,
// whatever they were allowed.
TEST(Planner, ALongPromptIsNotReadForShortTexts) {
  const auto passes = [](std::int64_t n) { return 0.05 * static_cast<double>(n); };
  PlannedWorld world(
      {.machine = plan_machines()[0], .draft_rows = good_draft(), .draft_passes = passes});
  Engine& engine = world.engine();
  std::uint64_t next = 0;
  const auto drafted = [&](std::int32_t tokens, std::int32_t allowed) {
    std::vector<Token> prompt;
    for (int i = 0; i < 400; ++i) prompt.push_back(static_cast<Token>(mix64(next++) % kVocab));
    const RequestId id = *engine.add(request(prompt, 1.0f, 5, allowed, kAutoWidth));
    for (std::int64_t said = 0; engine.busy();) {
      for (const Update& update : engine.step()) {
        said += static_cast<std::int64_t>(update.pieces.size());
      }
      if (said >= tokens) engine.cancel(id);
    }
    return engine.take(id)->speculation.drafted;
  };
  EXPECT_GT(drafted(kPlannedTokens, kPlannedTokens), 100);
  for (int i = 0; i < 30; ++i) drafted(5, kPlannedTokens);
  EXPECT_EQ(drafted(5, kPlannedTokens), 0);
  // Two texts that go on to their limit show that they may be long again.
  for (int i = 0; i < 2; ++i) drafted(kPlannedTokens, kPlannedTokens);
  EXPECT_GT(drafted(kPlannedTokens, kPlannedTokens), 100);
}

// The draft model reads a long prompt behind the text's first token, which comes as soon as without
// it.
TEST(Planner, ADraftsReadingDoesNotHoldUpTheFirstToken) {
  const PlanMachine machine = plan_machines()[0];
  const auto first_token_ms = [&](bool drafts) {
    double now_ms = 0.0;
    FakeModel target(testing::capabilities(1, 1024), PlannedWorld::target_rows());
    FakeModel draft(testing::capabilities(1, 1024), good_draft());
    target.on_evaluated([&](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
    draft.on_evaluated(
        [&](std::int64_t n) { now_ms += 0.04 * machine.ms(1) * static_cast<double>(n); });
    const FakeVocabulary vocabulary(kVocab);
    DraftModelDrafter drafter(draft, kVocab, {});
    std::vector<Drafter*> drafters;
    if (drafts) drafters.push_back(&drafter);
    Engine engine(target, vocabulary, drafters, {.now_ms = [&] { return now_ms; }});
    engine.planner().set_target_cost(measured_curve(machine));
    // The second time what reading takes is known.
    double first_ms = 0.0;
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<Token> prompt;
      for (int i = 0; i < 400; ++i) {
        prompt.push_back(static_cast<Token>(mix64(static_cast<std::uint64_t>(i + turn)) % kVocab));
      }
      const double start_ms = now_ms;
      const RequestId id = *engine.add(request(std::move(prompt), 1.0f, 5, 250, kAutoWidth));
      bool said = false;
      while (engine.busy()) {
        for (const Update& update : engine.step()) {
          if (!said && !update.pieces.empty()) first_ms = now_ms - start_ms;
          said = said || !update.pieces.empty();
        }
      }
      EXPECT_EQ(engine.take(id)->speculation.accepted > 40, drafts) << "turn " << turn;
    }
    return first_ms;
  };
  EXPECT_DOUBLE_EQ(first_token_ms(true), first_token_ms(false));
}

}  // namespace
}  // namespace outrider
