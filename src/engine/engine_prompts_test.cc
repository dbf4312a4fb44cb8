// Long prompts beside texts that go on, on machines and clocks of numbers: what the texts lose, and
// that the prompt is read all the same.
#include <gtest/gtest.h>

#include <memory>
#include <string>
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
      now_ms_ += machine.ms(static_cast<std::int32_t>(tokens));
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
  double speed_beside_a_prompt() {
    const double before = now_ms_;
    const RequestId late = *engine_.add(request(std::vector<Token>(kLongPrompt, 2), 1.0f, 2, 1, 1));
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

}  // namespace
}  // namespace outrider
