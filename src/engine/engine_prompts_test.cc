// Long prompts beside texts that go on, on machines and clocks of numbers: what the texts lose, and
// that the prompt is read all the same. And beside short prompts: what each of them waits for.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "testing/fake_engine.h"
#include "testing/plan_machines.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

constexpr std::int32_t kTexts = 4;
constexpr std::size_t kLongPrompt = 900;

// kTexts texts that go on, and room for more, with prompts read by `share`.
class LongPrompt {
 public:
  LongPrompt(const PlanMachine& machine, double share)
      : target_(Capabilities{.n_vocab = kVocab,
                             .n_ctx = 8192,
                             .n_batch = 512,
                             .n_sequences = kTexts + 4,
                             .rollback = Rollback::kAny,
                             .max_leaves = 8,
                             .max_width = 16},
                random_rows(kVocab, 5, 3.0f)),
        vocabulary_(kVocab),
        engine_(
            target_, vocabulary_, {},
            {.prompt_chunk = 128, .prompt_share = share, .now_ms = [this] { return now_ms_; }}) {
    target_.on_evaluated([this, &machine](std::int64_t tokens) {
      now_ms_ += machine.ms(static_cast<std::int32_t>(tokens)) + std::exchange(pause_ms_, 0.0);
    });
    for (std::int32_t i = 0; i < kTexts; ++i) {
      texts_.push_back(
          *engine_.add(request({1}, 1.0f, 10 + static_cast<std::uint64_t>(i), 6000, 1)));
    }
  }

  // Tokens a millisecond of all texts over `steps` steps.
  double speed(int steps) {
    const double before = now_ms_;
    std::int64_t tokens = 0;
    for (int i = 0; i < steps; ++i) tokens += step();
    return static_cast<double>(tokens) / (now_ms_ - before);
  }

  // Until the prompt that is added now has been read; tokens a millisecond of the texts meanwhile.
  double speed_beside_a_prompt(std::size_t n_tokens = kLongPrompt) {
    const double before = now_ms_;
    const RequestId late = *engine_.add(request(std::vector<Token>(n_tokens, 2), 1.0f, 2, 1, 1));
    std::int64_t tokens = 0;
    bool done = false;
    for (int i = 0; !done; ++i) {
      EXPECT_LT(i, 20'000) << "the prompt is not read";
      if (i >= 20'000) return 0.0;
      tokens += step();
      done = engine_.take(late).ok();
    }
    reading_ms_ = now_ms_ - before;
    return static_cast<double>(tokens) / reading_ms_;
  }
  double reading_ms() const { return reading_ms_; }

  // The next pass takes so much longer.
  void hold_up(double ms) { pause_ms_ = ms; }

 private:
  std::int64_t step() {
    std::int64_t tokens = 0;
    for (const Update& update : engine_.step()) {
      if (update.id > kTexts) continue;
      tokens += std::ssize(update.pieces);
    }
    EXPECT_EQ(engine_.check_integrity(), "");
    return tokens;
  }

  double now_ms_ = 0.0;
  double pause_ms_ = 0.0;
  double reading_ms_ = 0.0;
  FakeModel target_;
  FakeVocabulary vocabulary_;
  Engine engine_;
  std::vector<RequestId> texts_;
};

TEST(LongPrompts, CostTextsThatGoOnAFifthOfTheirSpeedAndABurstAtMost) {
  for (const PlanMachine& machine : plan_machines()) {
    LongPrompt world(machine, 0.2);
    const double before = world.speed(300);
    const double beside = world.speed_beside_a_prompt();
    const double time = world.reading_ms();
    const double floor = before * (0.8 - PromptShare::kBurstMs / time);
    EXPECT_GE(beside, floor * 0.98) << machine.name;
  }
}

TEST(LongPrompts, WithoutALimitWouldCostThemMost) {
  for (const PlanMachine& machine : plan_machines()) {
    if (machine.ms(128) < 4 * machine.ms(kTexts)) continue;  // flat: they cost nothing
    LongPrompt world(machine, 1.0);
    const double before = world.speed(300);
    EXPECT_LT(world.speed_beside_a_prompt(), 0.5 * before) << machine.name;
  }
}

// A process that is stopped for a minute while it reads a prompt.
TEST(LongPrompts, APassThatIsHeldUpKeepsNoLaterPromptWaiting) {
  for (const PlanMachine& machine : plan_machines()) {
    const auto next_ms = [&machine](double pause_ms) {
      LongPrompt world(machine, 0.2);
      world.speed(50);
      world.hold_up(pause_ms);
      world.speed_beside_a_prompt(8);
      world.speed_beside_a_prompt(100);
      return world.reading_ms();
    };
    EXPECT_LT(next_ms(60'000.0), next_ms(0.0) + 15'000.0) << machine.name;
  }
}

// Prompts of which nobody's text goes on, in steps of 32 tokens.
struct ManyPrompts {
  explicit ManyPrompts(const EngineOptions& options = {.least_awaited = 1})
      : target(Capabilities{.n_vocab = kVocab,
                            .n_ctx = 2048,
                            .n_batch = 32,
                            .n_sequences = 4,
                            .rollback = Rollback::kAny,
                            .max_leaves = 8,
                            .max_width = 16,
                            .can_share = true},
               rows),
        engine(target, vocabulary, {}, options) {}

  RequestId add(const std::vector<Token>& prompt, std::int32_t max_tokens = 1) {
    return *engine.add(request(prompt, 1.0f, 5, max_tokens, 1));
  }
  // Steps until the answer to `id` is there, which must be that of plain decoding.
  int steps_until(RequestId id, const std::vector<Token>& prompt) {
    for (int n = 1; n < 2'000; ++n) {
      engine.step();
      EXPECT_EQ(engine.check_integrity(), "");
      const Result<Completion> got = engine.take(id);
      if (!got.ok()) continue;
      EXPECT_EQ(got->tokens, reference(rows, prompt, 1.0f, 5, got->tokens.size()));
      return n;
    }
    ADD_FAILURE() << "not answered";
    return 0;
  }

  RowFunction rows = random_rows(kVocab, 5, 3.0f, /*memory=*/64);
  FakeModel target;
  FakeVocabulary vocabulary{kVocab};
  Engine engine;
};

TEST(LongPrompts, AShortOneIsNotHeldUpByALongOneBeforeIt) {
  ManyPrompts world;
  const std::vector<Token> prompt(1'600, 2);
  const std::vector<Token> question = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3};
  const RequestId first = world.add(prompt);
  for (int i = 0; i < 5; ++i) {
    world.engine.step();
    EXPECT_EQ(world.target.tokens_evaluated(), 32 * (i + 1)) << "alone it gets all of each step";
  }
  EXPECT_EQ(world.steps_until(world.add(question), question), 1);
  EXPECT_EQ(world.target.length(0), 5 * 32 + 32 - 12);
  world.steps_until(first, prompt);
  // One step more, in which it came back to multiples of the batch.
  EXPECT_EQ(world.target.evaluations(), 1'600 / 32 + 1);
}

TEST(LongPrompts, AreReadInTwiceTheStepsHoweverManyShortOnesCome) {
  ManyPrompts world;
  const std::vector<Token> prompt(1'600, 2);
  const RequestId first = world.add(prompt);
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    ASSERT_LT(steps, 2 * 1'600 / 32 + 3);
    // As many as the target has sequences for, again and again.
    while (!world.engine.idle().entries().empty()) world.add(std::vector<Token>(20, 7));
    for (const Update& update : world.engine.step()) {
      if (!update.finished) continue;
      done = done || update.id == first;
      const Result<Completion> got = world.engine.take(update.id);
      if (update.id != first) continue;
      EXPECT_EQ(got->tokens, reference(world.rows, prompt, 1.0f, 5, 1));
    }
  }
  EXPECT_GT(steps, 1'600 / 32 + 10) << "the short ones had their part";
}

// What a text leaves to prompts is one piece a step here: the short one gets every other.
TEST(LongPrompts, BesideATextAShortOneGetsEveryOtherPiece) {
  ManyPrompts world({.prompt_chunk = 8});
  const RequestId text = world.add({1}, 400);
  world.engine.step();
  const std::vector<Token> prompt(1'600, 2);
  const RequestId first = world.add(prompt);
  world.engine.step();
  const std::vector<Token> question(24, 3);
  EXPECT_LE(world.steps_until(world.add(question), question), 6);
  EXPECT_LT(world.engine.prompt_progress(first), 0.05);
  world.steps_until(first, prompt);
  world.engine.cancel(text);
  run_all(world.engine);
}

// What a context shift leaves is read again beside the others like any long prompt.
TEST(LongPrompts, AContextShiftCostsTextsThatGoOnAFifthOfTheirSpeedToo) {
  for (const PlanMachine& machine : plan_machines()) {
    double now_ms = 0.0;
    Capabilities c = capabilities(2, 2048);
    c.n_batch = 512;
    FakeModel target(c, random_rows(kVocab, 5, 3.0f));
    target.on_evaluated([&](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
    FakeVocabulary vocabulary(kVocab);
    Engine engine(target, vocabulary, {},
                  {.prompt_chunk = 128, .prompt_share = 0.2, .now_ms = [&] { return now_ms; }});
    Request full = request(std::vector<Token>(2040, 2), 1.0f, 5, 20, 1);
    full.shift_keep = 1748;  // of 2,048 tokens 150 are dropped and 150 read again
    const RequestId shifted = *engine.add(std::move(full));
    for (bool begun = false; !begun;) {
      for (const Update& update : engine.step()) begun = begun || !update.pieces.empty();
    }
    const RequestId other = *engine.add(request({1}, 1.0f, 6, 2000, 1));
    const double start_ms = now_ms;
    double plain_ms = 0.0;  // of as many steps, without what is read in them
    Result<Completion> got = engine.take(shifted);
    for (int steps = 0; !got.ok(); ++steps, got = engine.take(shifted)) {
      ASSERT_LT(steps, 1900) << machine.name << ": the rest is never read";
      engine.step();
      plain_ms += machine.ms(2);
      EXPECT_EQ(engine.check_integrity(), "");
    }
    EXPECT_EQ(got->shifts, 1);
    const double took_ms = now_ms - start_ms;
    EXPECT_LE(took_ms - plain_ms, 0.2 * took_ms + PromptShare::kBurstMs + machine.ms(32))
        << machine.name;
    engine.cancel(other);
    run_all(engine);
  }
}

// Who waits for the beginning of a long prompt waits for that beginning only, though another long
// one is before it.
TEST(LongPrompts, WhatIsWaitedForIsReadBeforeTheRest) {
  ManyPrompts world({.reuse_prefix = true, .least_awaited = 1});
  const std::vector<Token> oldest(1'600, 2);
  std::vector<Token> other(1'200, 3);
  world.add(oldest);
  world.add(other);
  world.engine.step();
  EXPECT_EQ(world.target.length(1), 0) << "oldest first: both are long";
  other.resize(40);
  other.push_back(4);
  EXPECT_LE(world.steps_until(world.add(other), other), 5);
  EXPECT_LT(world.target.length(0), 200);
  run_all(world.engine);
}

}  // namespace
}  // namespace outrider
