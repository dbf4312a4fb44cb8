// The planner at work in the engine, on made-up machines with a made-up clock: what it chooses is
// compared with plain decoding and with every fixed width, to the millisecond.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/engine.h"
#include "testing/fake_engine.h"
#include "testing/plan_machines.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

constexpr std::int32_t kContext = 2048;
constexpr std::int32_t kTokens = 400;

struct Setting {
  PlanMachine machine;
  RowFunction draft_rows;
  double draft_share = 0.1;  // of the target's single token, for one of the draft's
  float temperature = 1.0f;
  bool measured = true;  // at load
  std::int32_t n_sequences = 1;
  double noise = 0.0;         // passes take up to so much longer, and one in twelve four times
  double slowdown_at = 1e18;  // from here on (ms) everything takes 1.7 times as long
};

class PlannedWorld {
 public:
  explicit PlannedWorld(Setting setting)
      : setting_(std::move(setting)),
        target_(capabilities(setting_.n_sequences), target_rows()),
        draft_(capabilities(setting_.n_sequences), setting_.draft_rows),
        vocabulary_(kVocab),
        drafter_(draft_, kVocab, {}),
        engine_(target_, vocabulary_, {&drafter_}, {.now_ms = [this] { return now_ms_; }}) {
    target_.on_evaluated([this](std::int64_t tokens) {
      spend(setting_.machine.ms(static_cast<std::int32_t>(tokens)));
    });
    draft_.on_evaluated([this](std::int64_t tokens) {
      const double batch = 1.0 + 0.2 * static_cast<double>(tokens - 1);
      spend(setting_.draft_share * setting_.machine.ms(1) * batch);
    });
    if (!setting_.measured) return;
    std::vector<CostPoint> points;
    for (const std::int32_t width : {1, 2, 3, 4, 8, 16}) {
      points.push_back({.width = width, .ms = setting_.machine.ms(width)});
    }
    engine_.planner().set_target_cost(CostCurve(points));
  }

  static RowFunction target_rows() { return random_rows(kVocab, 3, 3.0f); }

  // The made-up time of one request.
  double run(std::int32_t width, std::uint64_t seed) {
    const double before = now_ms_;
    const Result<RequestId> id =
        engine_.add(request({1, 2}, setting_.temperature, seed, kTokens, width));
    EXPECT_TRUE(id.ok());
    while (engine_.busy()) engine_.step();
    check(*engine_.take(*id), seed);
    return now_ms_ - before;
  }

  // The made-up time of one request for each width, all at once.
  double run_together(const std::vector<std::int32_t>& widths, std::uint64_t seed) {
    const double before = now_ms_;
    std::vector<RequestId> ids;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      ids.push_back(
          *engine_.add(request({1, 2}, setting_.temperature, seed + i, kTokens, widths[i])));
    }
    while (engine_.busy()) engine_.step();
    for (std::size_t i = 0; i < widths.size(); ++i) check(*engine_.take(ids[i]), seed + i);
    return now_ms_ - before;
  }

  // The made-up time of a token where all sequences are always at work, until `total` requests are
  // done.
  double ms_per_token(std::int32_t width, std::int32_t total, std::uint64_t seed) {
    std::vector<RequestId> running;
    const double before = now_ms_;
    std::int64_t tokens = 0;
    for (std::int32_t done = 0; done < total;) {
      while (static_cast<std::int32_t>(running.size()) < setting_.n_sequences) {
        running.push_back(
            *engine_.add(request({1, 2}, setting_.temperature, seed++, kTokens, width)));
      }
      for (const Update& update : engine_.step()) {
        tokens += static_cast<std::int64_t>(update.pieces.size());
        if (!update.finished) continue;
        last_ = *engine_.take(update.id);
        std::erase(running, update.id);
        ++done;
      }
    }
    return (now_ms_ - before) / static_cast<double>(tokens);
  }

  const Completion& last() const { return last_; }
  Engine& engine() { return engine_; }

 private:
  static Capabilities capabilities(std::int32_t n_sequences) {
    Capabilities caps = testing::capabilities(n_sequences, kContext);
    caps.n_batch = 64;
    caps.max_width = 32;
    return caps;
  }

  void check(Completion completion, std::uint64_t seed) {
    last_ = std::move(completion);
    EXPECT_EQ(last_.tokens, reference(target_rows(), {1, 2}, setting_.temperature, seed, kTokens));
    const SpeculationStats& s = last_.speculation;
    EXPECT_LE(s.emitted, s.accepted + s.steps);  // the last step may be cut off
    expect_shape_adds_up(s);
    if (s.drafters.empty() || !s.enabled) return;
    // What only filled a step counts where it happened to be right.
    const std::int64_t fillers = s.drafted - s.drafters[0].drafted;
    EXPECT_GE(fillers, 0);
    EXPECT_EQ(fillers, s.accepted - s.drafters[0].accepted);
  }

  void spend(double ms) {
    std::uint64_t draw = mix64(++draws_);
    if (setting_.noise > 0.0) {
      ms *= 1.0 + setting_.noise * static_cast<double>(draw % 1000) / 1000.0;
      if (mix64(draw) % 12 == 0) ms *= 4.0;
    }
    if (now_ms_ > setting_.slowdown_at) ms *= 1.7;
    now_ms_ += ms;
  }

  Setting setting_;
  double now_ms_ = 0.0;
  std::uint64_t draws_ = 0;
  FakeModel target_;
  FakeModel draft_;
  FakeVocabulary vocabulary_;
  DraftModelDrafter drafter_;
  Engine engine_;
  Completion last_;
};

RowFunction good_draft() { return noisy_rows(PlannedWorld::target_rows(), 9, 0.4f); }
RowFunction useless_draft() { return random_rows(kVocab, 77, 3.0f); }

// Good for the first part of the text only.
RowFunction collapsing_draft(std::size_t from) {
  return [good = good_draft(), bad = useless_draft(), from](std::span<const Token> context) {
    return context.size() < from ? good(context) : bad(context);
  };
}

std::vector<std::pair<std::string, RowFunction>> drafts() {
  return {
      {"useless", useless_draft()}, {"good", good_draft()}, {"collapsing", collapsing_draft(150)}};
}

double plain_ms(const Setting& setting, std::uint64_t seed) {
  PlannedWorld world(setting);
  return world.run(1, seed);
}

TEST(Planner, AGoodCheapDraftIsAboutAsGoodAsTheBestFixedWidthOrBetter) {
  for (const PlanMachine& machine : plan_machines()) {
    const Setting setting{.machine = machine, .draft_rows = good_draft(), .draft_share = 0.08};
    double best = 1e300;
    std::int32_t best_width = 0;
    for (const std::int32_t width : {1, 2, 3, 4, 6, 8, 12, 16}) {
      PlannedWorld fixed(setting);
      fixed.run(width, 5);
      const double ms = fixed.run(width, 6);
      if (ms < best) best_width = width;
      best = std::min(best, ms);
    }
    PlannedWorld world(setting);
    world.run(kAutoWidth, 5);
    const double ms = world.run(kAutoWidth, 6);
    EXPECT_LT(ms, best * 1.08) << machine.name << ": width " << best_width << " takes " << best
                               << ", plain " << plain_ms(setting, 6);
  }
}

TEST(Planner, NeverSlowerThanPlainWhateverTheDraft) {
  for (const PlanMachine& machine : plan_machines()) {
    for (const double share : {0.1, 0.3, 1.0}) {
      for (const auto& [name, rows] : drafts()) {
        const Setting setting{.machine = machine, .draft_rows = rows, .draft_share = share};
        PlannedWorld world(setting);
        for (const std::uint64_t seed : {5, 6, 7}) {
          const double ms = world.run(kAutoWidth, seed);
          EXPECT_GT(plain_ms(setting, seed) / ms, 0.97)
              << machine.name << ", a draft that is " << name << " and takes " << share
              << " of the target, request " << seed << ": "
              << world.last().speculation.drafters[0].calls << " calls";
        }
      }
    }
  }
}

TEST(Planner, SeveralRequestsWithAGoodDraftAreNotSlowerThanPlainOnes) {
  for (const PlanMachine& machine : plan_machines()) {
    const Setting setting{
        .machine = machine, .draft_rows = good_draft(), .draft_share = 0.2, .n_sequences = 4};
    const std::vector<std::int32_t> planned(4, kAutoWidth);
    PlannedWorld plain(setting);
    const double plain_ms = plain.run_together({1, 1, 1, 1}, 5);
    PlannedWorld all(setting);
    all.run_together(planned, 50);
    EXPECT_GT(plain_ms / all.run_together(planned, 5), 0.97)
        << machine.name << ": " << all.last().speculation.drafters[0].calls << " calls, "
        << all.last().speculation.accepted << " of " << all.last().speculation.drafted << " in "
        << all.last().speculation.steps << " steps";
  }
}

// Under a steady load, where a token of any request is worth the same.
TEST(Planner, SeveralRequestsAreNotSlowerThanPlainOnesWhateverTheDraft) {
  for (const std::int32_t n : {2, 4, 16}) {
    for (const PlanMachine& machine : plan_machines()) {
      for (const double share : {0.1, 0.3, 1.0}) {
        for (const auto& [name, rows] : drafts()) {
          const Setting setting{
              .machine = machine, .draft_rows = rows, .draft_share = share, .n_sequences = n};
          PlannedWorld plain(setting);
          PlannedWorld planned(setting);
          const double ratio =
              plain.ms_per_token(1, 2 * n, 5) / planned.ms_per_token(kAutoWidth, 2 * n, 5);
          EXPECT_GT(ratio, 0.97) << n << " requests, " << machine.name << ", a draft that is "
                                 << name << " and takes " << share << " of the target";
        }
      }
    }
  }
}

// Whether a drawn token is sent must not depend on it, and the planner looks at everything.
TEST(Planner, RulesThatDrawKeepAFixedWidth) {
  for (const AcceptanceRule rule : {AcceptanceRule::kRejection, AcceptanceRule::kBlock}) {
    std::vector<std::vector<Token>> texts;
    for (const std::int32_t width : {kAutoWidth, Planner::kTrialWidth}) {
      FakeModel target(testing::capabilities(1, 256), PlannedWorld::target_rows());
      FakeModel draft(testing::capabilities(1, 256), good_draft());
      const FakeVocabulary vocabulary(kVocab);
      DraftModelDrafter drafter(draft, kVocab, {});
      Request r = request({1, 2}, 1.0f, 5, 100, width);
      r.rule = rule;
      const Completion completion = complete(target, vocabulary, {&drafter}, std::move(r));
      EXPECT_GT(completion.speculation.accepted, 20);
      texts.push_back(completion.tokens);
    }
    EXPECT_EQ(texts[0], texts[1]);
  }
}

// One request whose text is too long for the draft model says nothing of what the draft is worth.
TEST(Planner, ADraftThatCannotGuessForOneRequestIsAskedForTheNext) {
  const PlanMachine machine = plan_machines()[0];
  FakeModel target(testing::capabilities(1, 512), PlannedWorld::target_rows());
  FakeModel draft(testing::capabilities(1, 64), good_draft());
  const FakeVocabulary vocabulary(kVocab);
  DraftModelDrafter drafter(draft, kVocab, {});
  double now_ms = 0.0;
  target.on_evaluated(
      [&](std::int64_t tokens) { now_ms += machine.ms(static_cast<std::int32_t>(tokens)); });
  draft.on_evaluated([&](std::int64_t) { now_ms += 1.0; });
  Engine engine(target, vocabulary, {&drafter}, {.now_ms = [&] { return now_ms; }});
  const auto said = [&](std::int32_t n) {
    const RequestId id = *engine.add(request({1, 2}, 1.0f, 5, n, kAutoWidth));
    while (engine.busy()) engine.step();
    return engine.take(id)->speculation;
  };
  said(400);
  EXPECT_GT(said(50).accepted, 20);
}

TEST(Planner, ADraftThatBecomesGoodAgainIsFoundOut) {
  const PlanMachine machine = plan_machines()[2];
  bool good = false;
  const RowFunction rows = [&good, a = good_draft(),
                            b = useless_draft()](std::span<const Token> context) {
    return good ? a(context) : b(context);
  };
  const Setting setting{.machine = machine, .draft_rows = rows, .draft_share = 0.08};
  PlannedWorld world(setting);
  world.run(kAutoWidth, 5);
  EXPECT_LT(world.last().speculation.drafters[0].calls, kTokens / 2);
  good = true;
  for (std::uint64_t seed = 6; seed < 14; ++seed) world.run(kAutoWidth, seed);
  EXPECT_GT(world.last().speculation.accepted, 100);
}

TEST(Planner, NoiseAndDriftDoNotMislead) {
  for (const PlanMachine& machine : plan_machines()) {
    Setting setting{.machine = machine,
                    .draft_rows = good_draft(),
                    .draft_share = 0.08,
                    .noise = 0.2,
                    .slowdown_at = 3000.0};
    PlannedWorld plain(setting);
    double plain_total = 0.0;
    PlannedWorld planned(setting);
    double planned_total = 0.0;
    for (std::uint64_t seed = 5; seed < 10; ++seed) {
      plain_total += plain.run(1, seed);
      planned_total += planned.run(kAutoWidth, seed);
    }
    EXPECT_GT(plain_total / planned_total, 0.97)
        << machine.name << ": " << planned.last().speculation.drafters[0].calls << " calls, "
        << planned.last().speculation.accepted << " of " << planned.last().speculation.drafted;
    if (machine.name == "flat" || machine.name == "gpu") {
      EXPECT_GT(plain_total / planned_total, 1.5) << machine.name;
    }
  }
}

TEST(Planner, WithoutAMeasurementTheCostsAreFoundOut) {
  for (const PlanMachine& machine : plan_machines()) {
    Setting setting{.machine = machine, .draft_rows = useless_draft(), .measured = false};
    PlannedWorld world(setting);
    world.run(kAutoWidth, 5);
    EXPECT_TRUE(world.engine().planner().knows_costs(1));
    EXPECT_GT(plain_ms(setting, 6) / world.run(kAutoWidth, 6), 0.97) << machine.name;
    setting.draft_rows = good_draft();
    PlannedWorld better(setting);
    better.run(kAutoWidth, 5);
    if (machine.name == "flat") {
      EXPECT_GT(plain_ms(setting, 6) / better.run(kAutoWidth, 6), 1.5);
    }
  }
}

// A dear draft model beside a cheap one that is as good: what was guessed once is not bought again.
TEST(Planner, ADearDraftBesideACheapOneIsNotSlowerThanTheCheapOneAlone) {
  for (const PlanMachine& machine : plan_machines()) {
    const auto ms_of = [&machine](bool with_dear) {
      double now_ms = 0.0;
      FakeModel target(testing::capabilities(1, kContext), PlannedWorld::target_rows());
      FakeModel cheap(testing::capabilities(1, kContext), good_draft());
      FakeModel dear(testing::capabilities(1, kContext), good_draft());
      target.on_evaluated([&](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
      cheap.on_evaluated([&](std::int64_t n) { now_ms += 0.01 * static_cast<double>(n); });
      dear.on_evaluated([&](std::int64_t n) {
        now_ms += 0.2 * machine.ms(1) * (1.0 + 0.2 * static_cast<double>(n - 1));
      });
      const FakeVocabulary vocabulary(kVocab);
      DraftModelDrafter dear_drafter(dear, kVocab, {});
      DraftModelDrafter cheap_drafter(cheap, kVocab, {});
      std::vector<Drafter*> drafters = {&cheap_drafter};
      if (with_dear) drafters.insert(drafters.begin(), &dear_drafter);
      Engine engine(target, vocabulary, drafters, {.now_ms = [&] { return now_ms; }});
      std::vector<CostPoint> points;
      for (const std::int32_t width : {1, 2, 3, 4, 8, 16}) {
        points.push_back({.width = width, .ms = machine.ms(width)});
      }
      engine.planner().set_target_cost(CostCurve(points));
      for (const std::uint64_t seed : {5, 6, 7}) {
        const RequestId id = *engine.add(request({1, 2}, 1.0f, seed, kTokens, kAutoWidth));
        while (engine.busy()) engine.step();
        EXPECT_EQ(engine.take(id)->tokens,
                  reference(PlannedWorld::target_rows(), {1, 2}, 1.0f, seed, kTokens));
      }
      return now_ms;
    };
    const double ratio = ms_of(false) / ms_of(true);
    EXPECT_GT(ratio, 0.965) << machine.name;  // 0.948 where what is there is bought again
  }
}

// A request of a fixed width drafts in each step, whatever that costs; the others' books are not
// charged for it.
TEST(Planner, AFixedWidthIsNotChargedToThePlannersBooks) {
  const PlanMachine machine = plan_machines()[0];
  Setting setting{
      .machine = machine, .draft_rows = good_draft(), .draft_share = 0.08, .n_sequences = 4};
  PlannedWorld world(setting);
  world.run_together({4, 4, 4, kAutoWidth}, 5);
  EXPECT_FALSE(world.engine().planner().account(0).in_debt());
  EXPECT_GT(world.last().speculation.accepted, 100) << "the last one's";
}

// A text that begins as an earlier one did is not new to a draft model that has read it.
TEST(Planner, ACachedPromptNeedsNoReading) {
  const PlanMachine machine = plan_machines()[0];
  double now_ms = 0.0;
  FakeModel target(testing::capabilities(1, kContext), PlannedWorld::target_rows());
  FakeModel draft(testing::capabilities(1, kContext), good_draft());
  target.on_evaluated([&](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
  // Reading is dear here, so that a long text is not read for the rest of it.
  draft.on_evaluated([&](std::int64_t n) {
    now_ms += (n > 16 ? 0.3 : 0.05) * machine.ms(1) * static_cast<double>(n);
  });
  const FakeVocabulary vocabulary(kVocab);
  DraftModelDrafter drafter(draft, kVocab, {});
  Engine engine(target, vocabulary, {&drafter},
                {.reuse_prefix = true, .now_ms = [&] { return now_ms; }});
  engine.planner().set_target_cost(
      CostCurve(std::vector<CostPoint>{{.width = 1, .ms = machine.ms(1)},
                                       {.width = 4, .ms = machine.ms(4)},
                                       {.width = 16, .ms = machine.ms(16)}}));
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
    if (turn > 0) EXPECT_GT(next.cached_tokens, length - 10);
    EXPECT_GT(next.speculation.accepted, 40) << "turn " << turn;
    text.insert(text.end(), next.tokens.begin(), next.tokens.end());
  }
  // Nor is reading taken for cheap because nothing had to be read.
  EXPECT_GT(engine.planner().account(0).reading_ms(100), 20.0 * machine.ms(1));
}

TEST(Planner, CostsAreFoundOutWhereRequestsAlwaysOverlap) {
  for (const PlanMachine& machine : plan_machines()) {
    const Setting setting{
        .machine = machine, .draft_rows = useless_draft(), .measured = false, .n_sequences = 3};
    PlannedWorld plain(setting);
    PlannedWorld planned(setting);
    const double ratio = plain.ms_per_token(1, 9, 5) / planned.ms_per_token(kAutoWidth, 9, 5);
    EXPECT_TRUE(planned.engine().planner().knows_costs(3));
    EXPECT_GT(ratio, 0.97) << machine.name;
  }
}

TEST(Planner, PredictedChancesComeTrue) {
  for (const float temperature : {0.0f, 1.0f}) {
    const Setting setting{.machine = plan_machines()[0],
                          .draft_rows = noisy_rows(PlannedWorld::target_rows(), 9, 1.5f),
                          .draft_share = 0.02,
                          .temperature = temperature};
    PlannedWorld world(setting);
    for (std::uint64_t seed = 5; seed < 25; ++seed) world.run(kAutoWidth, seed);
    const CalibrationScore& score = world.engine().planner().score();
    EXPECT_GT(score.n(), 1000);
    EXPECT_LT(score.calibration_error(), 0.05) << "temperature " << temperature;
    // At temperature 1 this draft's confidence says next to nothing: drawn tokens agree or do not.
    EXPECT_LT(score.brier(), score.brier_of_means() * (temperature > 0.0f ? 1.02 : 1.0))
        << "temperature " << temperature;
  }
}

}  // namespace
}  // namespace outrider
