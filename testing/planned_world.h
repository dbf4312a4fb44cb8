// An engine on a simulated machine with a simulated clock and a draft model: what the planner
// chooses costs what the machine says, to the millisecond.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "testing/fake_engine.h"
#include "testing/plan_machines.h"

namespace outrider::testing {

inline constexpr std::int32_t kPlannedContext = 2048;
inline constexpr std::int32_t kPlannedTokens = 400;

// What `machine` takes, as measured at load.
inline CostCurve measured_curve(const PlanMachine& machine) {
  std::vector<CostPoint> points;
  for (const std::int32_t width : {1, 2, 3, 4, 8, 16}) {
    points.push_back({.width = width, .ms = machine.ms(width)});
  }
  return CostCurve(points);
}

// A target that saves its state before a chain reads what is in front of it in a pass of its own.
class PlannedTarget : public FakeModel {
 public:
  using FakeModel::FakeModel;

  Status evaluate(std::span<const EvalItem> items) override {
    in_front_ = 0;
    for (const EvalItem& item : items) {
      const bool saves = capabilities().rollback == Rollback::kSaved && item.tree != nullptr &&
                         item.tree->size() > 1;
      if (saves) in_front_ += static_cast<std::int32_t>(item.prefix.size());
    }
    return FakeModel::evaluate(items);
  }
  // What the evaluation takes that is under way, or was the last one.
  double ms(const PlanMachine& machine, std::int64_t tokens) const {
    const std::int32_t behind = static_cast<std::int32_t>(tokens) - in_front_;
    return (in_front_ > 0 ? machine.ms(in_front_) : 0.0) + machine.ms(behind);
  }

 private:
  std::int32_t in_front_ = 0;  // tokens
};

struct PlannedSetting {
  PlanMachine machine;
  RowFunction draft_rows;
  double draft_share = 0.1;  // of the target's single token, for one of the draft's
  float temperature = 1.0f;
  bool measured = true;  // at load
  std::int32_t n_sequences = 1;
  std::int32_t max_width = 32;  // of the target
  bool reuse_prefix = false;
  // What the draft's passes take instead, by their tokens, in the target's single tokens.
  std::function<double(std::int64_t)> draft_passes;
  double noise = 0.0;         // passes take up to so much longer, and one in twelve four times
  double slowdown_at = 1e18;  // from here on (ms) everything takes 1.7 times as long
  Rollback rollback = Rollback::kAny;  // of the target
};

class PlannedWorld {
 public:
  explicit PlannedWorld(PlannedSetting setting)
      : setting_(std::move(setting)),
        target_(target_capabilities(setting_), target_rows()),
        draft_(capabilities(setting_.n_sequences), setting_.draft_rows),
        vocabulary_(kVocab),
        drafter_(draft_, kVocab, {}),
        engine_(target_, vocabulary_, {&drafter_},
                {.reuse_prefix = setting_.reuse_prefix, .now_ms = [this] { return now_ms_; }}) {
    target_.on_evaluated(
        [this](std::int64_t tokens) { spend(target_.ms(setting_.machine, tokens)); });
    draft_.on_evaluated([this](std::int64_t tokens) {
      const double batch = 1.0 + 0.2 * static_cast<double>(tokens - 1);
      const double passes =
          setting_.draft_passes ? setting_.draft_passes(tokens) : setting_.draft_share * batch;
      spend(passes * setting_.machine.ms(1));
    });
    if (!setting_.measured) return;
    engine_.planner().set_target_cost(measured_curve(setting_.machine));
  }

  static RowFunction target_rows() { return random_rows(kVocab, 3, 3.0f); }

  // The made-up time of one request.
  double run(std::int32_t width, std::uint64_t seed) {
    const double before = now_ms_;
    const Result<RequestId> id =
        engine_.add(request({1, 2}, setting_.temperature, seed, kPlannedTokens, width));
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
          *engine_.add(request({1, 2}, setting_.temperature, seed + i, kPlannedTokens, widths[i])));
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
            *engine_.add(request({1, 2}, setting_.temperature, seed++, kPlannedTokens, width)));
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

  static Capabilities capabilities(std::int32_t n_sequences, std::int32_t max_width = 32) {
    Capabilities caps = testing::capabilities(n_sequences, kPlannedContext);
    caps.n_batch = 512;
    caps.max_width = max_width;
    return caps;
  }

  static Capabilities target_capabilities(const PlannedSetting& setting) {
    Capabilities caps = capabilities(setting.n_sequences, setting.max_width);
    caps.rollback = setting.rollback;
    if (setting.rollback != Rollback::kAny) caps.max_leaves = 1;
    return caps;
  }

 private:
  void check(Completion completion, std::uint64_t seed) {
    last_ = std::move(completion);
    EXPECT_EQ(last_.tokens,
              reference(target_rows(), {1, 2}, setting_.temperature, seed, kPlannedTokens));
    const SpeculationStats& s = last_.speculation;
    EXPECT_LE(s.emitted, s.accepted + s.steps);  // the last step may be cut off
    expect_shape_adds_up(s);
    if (s.drafters.empty() || !s.enabled) return;
    // What only filled a step is nobody's guess.
    const std::int64_t fillers = s.drafted - s.drafters[0].drafted;
    EXPECT_GE(fillers, 0);
    EXPECT_GE(fillers, s.accepted - s.drafters[0].accepted);
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

  PlannedSetting setting_;
  double now_ms_ = 0.0;
  std::uint64_t draws_ = 0;
  PlannedTarget target_;
  FakeModel draft_;
  FakeVocabulary vocabulary_;
  DraftModelDrafter drafter_;
  Engine engine_;
  Completion last_;
};

inline RowFunction good_draft() { return noisy_rows(PlannedWorld::target_rows(), 9, 0.4f); }
inline RowFunction useless_draft() { return random_rows(kVocab, 77, 3.0f); }

// Good for the first part of the text only.
inline RowFunction collapsing_draft(std::size_t from) {
  return [good = good_draft(), bad = useless_draft(), from](std::span<const Token> context) {
    return context.size() < from ? good(context) : bad(context);
  };
}

inline std::vector<std::pair<std::string, RowFunction>> drafts() {
  return {
      {"useless", useless_draft()}, {"good", good_draft()}, {"collapsing", collapsing_draft(150)}};
}

}  // namespace outrider::testing
