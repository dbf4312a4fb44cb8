// Short answers to new prompts, from one client and from many: what the draft reads, what is tried
// and what is guessed wrong must not make the whole slower than plain decoding, the first request
// of a process included. On a processor's costs, with a made-up clock.
#include <gtest/gtest.h>

#include "testing/planned_load.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

struct LoadDraft {
  std::string name;
  RowFunction rows;
  double share;  // of the target's time
};

std::vector<LoadDraft> load_drafts() {
  return {{"useful", good_draft(), 0.13},
          {"useful, dear", good_draft(), 0.4},
          {"useful, as costly as the target", good_draft(), 1.0},
          {"useless", useless_draft(), 0.13},
          {"useless, dear", useless_draft(), 0.4},
          {"useless, as costly as the target", useless_draft(), 1.0}};
}

LoadSetting setting(const LoadDraft& draft, std::int32_t clients, std::int32_t questions,
                    std::int32_t answer) {
  return {.machine = zen4_own_kernels(),
          .draft_rows = draft.rows,
          .draft_share = draft.share,
          .clients = clients,
          .questions = questions,
          .answer_tokens = answer};
}

double speed_up(const LoadSetting& setting) {
  return run_load(setting, 1).ms / run_load(setting, kAutoWidth).ms;
}

TEST(PlannerLoad, ShortAnswersToNewPromptsAreNotSlowerThanPlain) {
  for (const LoadDraft& draft : load_drafts()) {
    for (const std::int32_t answer : {16, 48}) {
      for (const std::int32_t clients : {1, 4, 16}) {
        // One that takes 0.4 of the target and is no help is found out once, for 3 % of this
        // little.
        const double least = draft.share == 0.4 ? 0.96 : 0.97;
        EXPECT_GT(speed_up(setting(draft, clients, 4, answer)), least)
            << clients << " clients, answers of " << answer << ", a draft that is " << draft.name;
      }
    }
  }
}

TEST(PlannerLoad, AProcessesFirstShortAnswersAreNotSlowerThanPlain) {
  for (const LoadDraft& draft : load_drafts()) {
    for (const std::int32_t answer : {16, 48}) {
      for (const std::int32_t clients : {1, 4, 16}) {
        EXPECT_GT(speed_up(setting(draft, clients, 1, answer)), 0.97)
            << clients << " clients, answers of " << answer << ", a draft that is " << draft.name;
      }
    }
  }
}

// Rows that are sure of a token which the first question's answer does not have there.
RowFunction always_wrong(std::int32_t prompt_tokens, std::int32_t answer_tokens) {
  std::vector<Token> text = LoadedWorld::prompt(0, prompt_tokens);
  const std::vector<Token> said =
      reference(PlannedWorld::target_rows(), text, LoadedWorld::kTemperature, LoadedWorld::seed(0),
                static_cast<std::size_t>(answer_tokens));
  text.insert(text.end(), said.begin(), said.end());
  return [text](std::span<const Token> context) {
    std::vector<float> row(kVocab, 0.0f);
    const Token next = context.size() < text.size() ? text[context.size()] : 0;
    row[static_cast<std::size_t>((next + 1) % kVocab)] = 40.0f;
    return row;
  };
}

// It reads the prompt, for a token's time, and is given up behind guesses that took two.
TEST(PlannerLoad, AFirstAnswerLosesLittleByADraftThatIsAlwaysWrong) {
  for (const auto& [answer, least] : {std::pair{48, 0.93}, {96, 0.95}, {192, 0.96}}) {
    for (const double share : {0.08, 0.13}) {
      const LoadDraft wrong{"always wrong", always_wrong(40, answer), share};
      const double speed = speed_up(setting(wrong, 1, 1, answer));
      EXPECT_GT(speed, least) << answer << " tokens, a pass takes " << share;
    }
  }
}

// What is not risked on a useless draft is not to be lost on a useful one.
TEST(PlannerLoad, AUsefulDraftPaysFromTheFirstShortAnswerOn) {
  const LoadDraft useful = load_drafts()[0];
  EXPECT_GT(speed_up(setting(useful, 1, 1, 16)), 1.3);
  EXPECT_GT(speed_up(setting(useful, 1, 1, 48)), 1.6);
}

// Sixteen requests leave no room for guesses here, so nobody's prompt is read for them but a few to
// find that out.
TEST(PlannerLoad, ADraftReadsNoPromptsWhereManyRequestsFillTheSteps) {
  const LoadSetting many = setting(load_drafts()[0], 16, 4, 48);
  const std::int64_t prompts = 16 * 4 * many.prompt_tokens;
  EXPECT_LT(run_load(many, kAutoWidth).draft_tokens, prompts / 5);
}

// No guess pays there, however right it is. So a drafter that needs no reading is hardly explored
// either: for a thousandth of the time, and not a hundredth.
TEST(PlannerLoad, WhereNoGuessCanPayHardlyAnythingIsExplored) {
  constexpr std::int32_t kRequests = 16;
  struct NeedsNoReading : ScriptedDrafter {
    using ScriptedDrafter::ScriptedDrafter;
    std::int64_t known(SeqId, std::span<const Token> text) const override {
      return static_cast<std::int64_t>(text.size());
    }
  };
  const PlanMachine machine = zen4_own_kernels();
  double now_ms = 0.0;
  FakeModel target(PlannedWorld::capabilities(kRequests), PlannedWorld::target_rows());
  target.on_evaluated([&](std::int64_t n) { now_ms += machine.ms(static_cast<int>(n)); });
  NeedsNoReading drafter([&](DraftRequest& request) {
    now_ms += 0.13 * machine.ms(1);
    request.tree->add(kRoot, 1, 0.5f, request.mask);
    return Status();
  });
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {&drafter}, {.now_ms = [&] { return now_ms; }});
  engine.planner().set_target_cost(measured_curve(machine));
  engine.planner().expect_passes(0, 0.13);
  std::vector<RequestId> ids;
  for (std::uint64_t seed = 0; ids.size() < std::size_t{kRequests}; ++seed) {
    ids.push_back(*engine.add(request({1, 2}, 1.0f, seed, kPlannedTokens, kAutoWidth)));
  }
  while (engine.busy()) engine.step();
  std::int64_t calls = 0;
  for (const RequestId id : ids) calls += engine.take(id)->speculation.drafters[0].calls;
  EXPECT_GT(calls, 0);
  EXPECT_LT(calls, 40);
}

}  // namespace
}  // namespace outrider
