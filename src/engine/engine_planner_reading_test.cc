// A draft model's reading beside texts that go on, on a clock of numbers: whom it holds up, and
// whom a text that does not fit the draft.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "testing/fake_engine.h"
#include "testing/planned_world.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

constexpr double kReadingStepMs = 50.0;  // of the target, next to whatever is in it
constexpr double kReadTokenMs = 1.5;

// Guesses pay well here, and a token that the draft reads takes kReadTokenMs.
class ReadingWorld {
 public:
  // `share`: prompt_share. `proven`: another run found that the draft is worth reading for.
  explicit ReadingWorld(double share, bool proven = true, std::int32_t draft_ctx = 8192)
      : target_(caps(8192), PlannedWorld::target_rows()),
        draft_(caps(draft_ctx), good_draft()),
        drafter_(draft_, kVocab, {}),
        engine_(
            target_, vocabulary_, {&drafter_},
            {.prompt_chunk = 128, .prompt_share = share, .now_ms = [this] { return now_ms_; }}) {
    const auto target_ms = [](std::int64_t n) {
      return kReadingStepMs + 0.02 * static_cast<double>(n);
    };
    target_.on_evaluated([this, target_ms](std::int64_t n) { now_ms_ += target_ms(n); });
    draft_.on_evaluated(
        [this](std::int64_t n) { now_ms_ += 5.0 + kReadTokenMs * static_cast<double>(n - 1); });
    std::vector<CostPoint> points;
    for (const std::int32_t width : {1, 2, 4, 8, 16, 32}) {
      points.push_back({.width = width, .ms = target_ms(width)});
    }
    Planner& planner = engine_.planner();
    planner.set_target_cost(CostCurve(points));
    planner.expect_passes(0, 0.1);
    planner.note_text(4'000, /*at_limit=*/true);  // so texts are expected to be long
    if (proven) know_the_draft();
  }

  static std::vector<Token> prompt(std::size_t n, std::uint64_t seed) {
    std::vector<Token> tokens;
    for (std::uint64_t i = 0; i < n; ++i) {
      tokens.push_back(static_cast<Token>(mix64((seed << 20) + i) % kVocab));
    }
    return tokens;
  }
  RequestId add(std::size_t n_prompt, std::uint64_t seed, std::int32_t max_tokens) {
    return *engine_.add(request(prompt(n_prompt, seed), 1.0f, seed, max_tokens, kAutoWidth));
  }
  void steps(int n) {
    for (int i = 0; i < n; ++i) step();
  }
  // What it took.
  double step() {
    const double before = now_ms_;
    engine_.step();
    EXPECT_EQ(drafter_.check_integrity(), "");
    return now_ms_ - before;
  }
  bool answers(RequestId id) {
    const std::vector<Update> updates = engine_.step();
    return std::any_of(updates.begin(), updates.end(),
                       [id](const Update& u) { return u.id == id && !u.pieces.empty(); });
  }
  // Until its first token is there.
  RequestId add_and_wait(std::size_t n_prompt, std::uint64_t seed, std::int32_t max_tokens) {
    const RequestId id = add(n_prompt, seed, max_tokens);
    int steps = 1;
    while (!answers(id) && steps < 1'000) ++steps;
    EXPECT_LT(steps, 1'000);
    return id;
  }
  // Of the steps until the request is done, what the longest takes.
  double longest_step(RequestId id) {
    double longest = 0.0;
    while (!done_.ok()) {
      longest = std::max(longest, step());
      done_ = engine_.take(id);
    }
    return longest;
  }
  const Completion& done() const { return *done_; }
  // Of all texts, what the draft holds.
  std::int64_t longest_read() const {
    Pos longest = 0;
    for (SeqId seq = 0; seq < 3; ++seq) longest = std::max(longest, draft_.length(seq));
    return longest;
  }
  // The request was ended; what became of it.
  Completion cancelled(RequestId id) {
    engine_.cancel(id);
    engine_.step();
    return *engine_.take(id);
  }

 private:
  // By a text, what its passes take and which guesses are right. What reading takes is said, since
  // so dear a reading is not believed at once; and that the draft gains under any load.
  void know_the_draft() {
    const RequestId text = add(200, 1'000, 100);
    while (!engine_.take(text).ok()) step();
    Planner& planner = engine_.planner();
    DrafterExperience known = planner.experience(0);
    known.reading_ms = kReadTokenMs;
    for (std::size_t i = 0; i < known.gained.size(); ++i) {
      known.gained[i] = i % 2 == 0 ? 25.0 : 50.0;
    }
    planner.recall(0, known);
  }
  static Capabilities caps(std::int32_t n_ctx) {
    Capabilities caps = testing::capabilities(3, n_ctx);
    caps.n_batch = 2048;
    caps.max_width = 32;
    return caps;
  }

  double now_ms_ = 0.0;
  FakeModel target_;
  FakeModel draft_;
  FakeVocabulary vocabulary_{kVocab};
  DraftModelDrafter drafter_;
  Engine engine_;
  Result<Completion> done_ = not_found("it runs");
};

constexpr std::size_t kReadPrompt = 1'000;
constexpr std::int32_t kReadAnswer = 600;

// Of a third text, beside `others` that are guessed for.
double longest_step_beside(ReadingWorld& world, int others) {
  for (int i = 0; i < others; ++i) world.add(1, static_cast<std::uint64_t>(i) + 2, 6'000);
  if (others > 0) world.steps(40);
  const double longest = world.longest_step(world.add(kReadPrompt, 9, kReadAnswer));
  EXPECT_EQ(world.done().tokens,
            reference(PlannedWorld::target_rows(), ReadingWorld::prompt(kReadPrompt, 9), 1.0f, 9,
                      static_cast<std::size_t>(kReadAnswer)));
  EXPECT_GT(world.done().speculation.accepted, 100) << "it was read up, and guessed for";
  return longest;
}

TEST(PlannerReading, BesideOthersALongTextIsReadInPieces) {
  ReadingWorld world(0.2);
  EXPECT_LT(longest_step_beside(world, 2), 2.0 * PromptShare::kReadMs);
}

TEST(PlannerReading, AloneItIsReadAtOnce) {
  ReadingWorld world(0.2);
  EXPECT_GT(longest_step_beside(world, 0), kReadTokenMs * kReadPrompt);
}

TEST(PlannerReading, WithoutALimitItIsReadAtOnceBesideOthersToo) {
  ReadingWorld world(1.0);
  EXPECT_GT(longest_step_beside(world, 2), kReadTokenMs * kReadPrompt);
}

// Else it would have no guesses until the long one is read up.
TEST(PlannerReading, AShortTextIsReadBeforeTheRestOfALongOne) {
  ReadingWorld world(0.2);
  world.add(1, 2, 6'000);
  world.steps(40);
  const RequestId large = world.add_and_wait(4'000, 3, 3'000);
  world.steps(5);
  const RequestId small = world.add_and_wait(200, 4, 600);
  world.steps(30);
  EXPECT_LT(world.longest_read(), 3'000) << "the large one is not read up";
  EXPECT_GT(world.cancelled(small).speculation.drafted, 0);
  EXPECT_GT(world.cancelled(large).speculation.draft_ms, 0.0) << "but was begun to be read";
}

// It stays one that guesses would pay for, in each of its steps, and is not to be reckoned with.
TEST(PlannerReading, ATextThatDoesNotFitTheDraftKeepsItFromNobodyElse) {
  ReadingWorld world(1.0, /*proven=*/false, /*draft_ctx=*/1'024);
  const RequestId large = world.add_and_wait(4'000, 2, 3'000);
  world.steps(3);
  const RequestId small = world.add_and_wait(300, 3, 700);
  world.steps(5);
  EXPECT_GE(world.longest_read(), 300) << "the small one's";
  EXPECT_GT(world.cancelled(small).speculation.drafted, 0);
  const std::string reason = world.cancelled(large).speculation.reason;
  EXPECT_NE(reason.find("context of 1024 tokens is full"), std::string::npos) << reason;
}

}  // namespace
}  // namespace outrider
