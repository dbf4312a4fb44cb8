// Clients on a simulated machine with a simulated clock: each asks one question after the other,
// each question with a prompt that nobody has read. All is charged: what the target and the draft
// read, exploration and the first request included.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "testing/fake_engine.h"
#include "testing/plan_machines.h"
#include "testing/planned_world.h"

namespace outrider::testing {

struct LoadSetting {
  PlanMachine machine;
  RowFunction draft_rows;
  double draft_share = 0.13;  // of the target's pass of as many tokens, for one of the draft's
  bool share_known = true;    // by the models' sizes, before the first pass
  std::int32_t clients = 1;
  std::int32_t questions = 4;  // of each client
  std::int32_t prompt_tokens = 40;
  std::int32_t answer_tokens = 48;
};

struct LoadResult {
  double ms = 0.0;                // of all
  std::vector<double> answer_ms;  // [answers, as they ended], from the question to the end
  std::int64_t calls = 0;         // of the draft, for each request
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::int64_t draft_tokens = 0;  // that the draft's passes took
};

class LoadedWorld {
 public:
  explicit LoadedWorld(LoadSetting setting)
      : setting_(std::move(setting)),
        target_(caps(setting_.clients), PlannedWorld::target_rows()),
        draft_(caps(setting_.clients), setting_.draft_rows),
        vocabulary_(kVocab),
        drafter_(draft_, kVocab, {}),
        engine_(target_, vocabulary_, {&drafter_}, {.now_ms = [this] { return now_ms_; }}) {
    target_.on_evaluated(
        [this](std::int64_t n) { now_ms_ += setting_.machine.ms(static_cast<std::int32_t>(n)); });
    draft_.on_evaluated([this](std::int64_t n) {
      result_.draft_tokens += n;
      now_ms_ += setting_.draft_share * setting_.machine.ms(static_cast<std::int32_t>(n));
    });
    engine_.planner().set_target_cost(measured_curve(setting_.machine));
    if (setting_.share_known) engine_.planner().expect_passes(0, setting_.draft_share);
  }

  Engine& engine() { return engine_; }

  // The prompt of question `question` (from 0), of `tokens`.
  static std::vector<Token> prompt(std::int32_t question, std::int32_t tokens) {
    std::vector<Token> prompt;
    for (std::int32_t i = 0; i < tokens; ++i) {
      const std::uint64_t draw =
          mix64((static_cast<std::uint64_t>(question) << 20) + static_cast<std::uint64_t>(i));
      prompt.push_back(static_cast<Token>(draw % kVocab));
    }
    return prompt;
  }
  // How its answer is drawn.
  static constexpr float kTemperature = 1.0f;
  static std::uint64_t seed(std::int32_t question) {
    return 5 + static_cast<std::uint64_t>(question);
  }

  LoadResult run(std::int32_t width) {
    const std::int32_t total = setting_.clients * setting_.questions;
    std::int32_t asked = 0;
    std::map<RequestId, double> began;
    const auto ask = [&] {
      began[*engine_.add(request(prompt(asked, setting_.prompt_tokens), kTemperature, seed(asked),
                                 setting_.answer_tokens, width))] = now_ms_;
      ++asked;
    };
    while (asked < setting_.clients) ask();
    while (engine_.busy()) {
      for (const Update& update : engine_.step()) {
        if (!update.finished) continue;
        note(*engine_.take(update.id), began.at(update.id));
        if (asked < total) ask();
      }
    }
    result_.ms = now_ms_;
    return result_;
  }

 private:
  static Capabilities caps(std::int32_t n_sequences) {
    Capabilities caps = PlannedWorld::capabilities(n_sequences);
    caps.n_batch = 2048;
    return caps;
  }

  void note(const Completion& completion, double began) {
    EXPECT_TRUE(completion.error.ok()) << completion.error.message();
    EXPECT_EQ(completion.tokens.size(), static_cast<std::size_t>(setting_.answer_tokens));
    result_.answer_ms.push_back(now_ms_ - began);
    const SpeculationStats& s = completion.speculation;
    result_.drafted += s.drafted;
    result_.accepted += s.accepted;
    if (!s.drafters.empty()) result_.calls += s.drafters[0].calls;
  }

  LoadSetting setting_;
  double now_ms_ = 0.0;
  LoadResult result_;
  FakeModel target_;
  FakeModel draft_;
  FakeVocabulary vocabulary_;
  DraftModelDrafter drafter_;
  Engine engine_;
};

inline LoadResult run_load(const LoadSetting& setting, std::int32_t width) {
  LoadedWorld world(setting);
  return world.run(width);
}

}  // namespace outrider::testing
