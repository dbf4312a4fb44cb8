// The acceptance rules through the whole engine, on the hand-written model.
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "engine/short_texts_test.h"
#include "testing/chi_square.h"
#include "testing/fake_engine.h"
#include "testing/sanitized.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

struct RuleCase {
  AcceptanceRule rule;
  std::int32_t branches;
  std::int32_t width;
  bool one_hot;  // a drafter without probabilities proposes as well, and is surer of it
  bool guess_first = false;
  std::int32_t max_leaves = 8;  // of the target
};

// A third of a million texts of three tokens for each rule: a million draws.
TEST(EngineRules, AMillionDrawsOfEveryRuleFollowTheTarget) {
  const std::uint64_t seed = testing::test_seed(20261121);
  const RowFunction rows = random_rows(kSmall, 3, 1.5f);
  const std::vector<Token> prompt = {1, 2};
  const std::vector<double> expected = chances_of_texts(rows, prompt);
  constexpr std::uint64_t kTexts = testing::kSanitized ? 20000 : 333334;
  for (const RuleCase c : {RuleCase{AcceptanceRule::kCoupled, 1, 4, false},
                           RuleCase{AcceptanceRule::kCoupled, 3, 6, true},
                           RuleCase{AcceptanceRule::kRejection, 1, 4, false},
                           RuleCase{AcceptanceRule::kRejection, 3, 6, true},
                           RuleCase{AcceptanceRule::kRejection, 1, 2, true},
                           RuleCase{AcceptanceRule::kBlock, 1, 3, true},
                           RuleCase{AcceptanceRule::kRejection, 3, 4, true, true, 1},
                           RuleCase{AcceptanceRule::kBlock, 1, 4, false}}) {
    Capabilities target_capabilities = small_capabilities();
    target_capabilities.max_leaves = c.max_leaves;
    FakeModel target(target_capabilities, rows);
    FakeModel small(small_capabilities(), noisy_rows(rows, 9, 1.0f));
    DraftModelDrafter draft(small, kSmall, {});
    ScriptedDrafter guess([](DraftRequest& r) {
      r.tree->add(kRoot, r.text.back(), 0.9f, r.mask);
      return Status();
    });
    const FakeVocabulary vocabulary(kSmall);
    std::vector<Drafter*> drafters = {&draft};
    if (c.one_hot) drafters.insert(c.guess_first ? drafters.begin() : drafters.end(), &guess);
    Engine engine(target, vocabulary, drafters);
    std::int64_t accepted = 0;
    const auto nth = [&](std::uint64_t i) {
      Request r = request(prompt, 1.0f, seed + i, static_cast<std::int32_t>(kLength), c.width);
      r.rule = c.rule;
      r.draft = {.branches = c.branches, .split_p = 0.05f};
      return r;
    };
    const std::vector<std::int64_t> counts = counts_of_texts(engine, kTexts, nth, &accepted);
    EXPECT_GT(testing::chi_square_p(counts, expected), testing::least_p())
        << "rule " << static_cast<int>(c.rule) << ", " << c.branches << " branches";
    EXPECT_GT(accepted, static_cast<std::int64_t>(kTexts / 2)) << "drafts must have been at work";
  }
}

TEST(EngineRules, CoupledTreesGiveThePlainTextInEveryShape) {
  const std::uint64_t seed = testing::test_seed(31);
  std::int64_t branches = 0;
  for (std::uint64_t round = 0; round < 30; ++round) {
    const RowFunction rows = random_rows(kVocab, seed + round, 2.0f);
    const std::vector<Token> prompt = {1, static_cast<Token>(round % kVocab)};
    for (const float temperature : {0.0f, 0.7f, 1.0f}) {
      const std::vector<Token> want = reference(rows, prompt, temperature, seed, 25);
      for (const float noise : {0.0f, 1.0f, 50.0f}) {
        for (const std::int32_t n : {1, 2, 4, 8}) {
          FakeModel target(capabilities(), rows);
          Capabilities wide = capabilities();
          wide.max_width = 64;
          FakeModel small(wide, noisy_rows(rows, round, noise));
          DraftModelDrafter draft(small, kVocab, {});
          const FakeVocabulary vocabulary(kVocab);
          Engine engine(target, vocabulary, {&draft});
          Request r = request(prompt, temperature, seed, 25, 2 + n);
          r.draft = {.branches = n, .split_p = 0.02f};
          const Result<RequestId> id = engine.add(std::move(r));
          ASSERT_TRUE(id.ok());
          run_all(engine, &draft);
          const Result<Completion> got = engine.take(*id);
          ASSERT_EQ(got->tokens, want) << "T " << temperature << ", noise " << noise << ", " << n;
          const SpeculationStats& s = got->speculation;
          ASSERT_EQ(s.emitted, 25);
          branches += s.drafted - s.accepted;
        }
      }
    }
  }
  EXPECT_GT(branches, 0);
}

TEST(EngineRules, TheTargetAsItsOwnDraftIsAcceptedWholeByEveryRule) {
  const RowFunction rows = random_rows(kVocab, 5, 2.0f);
  for (const AcceptanceRuleTraits& row : kAcceptanceRules) {
    FakeModel target(capabilities(), rows);
    FakeModel same(capabilities(), rows);
    DraftModelDrafter draft(same, kVocab, {});
    const FakeVocabulary vocabulary(kVocab);
    Request r = request({1, 2}, 1.0f, 3, 40, 5);
    r.rule = row.rule;
    const Completion got = complete(target, vocabulary, {&draft}, std::move(r));
    EXPECT_EQ(got.speculation.accepted, got.speculation.drafted);
    EXPECT_EQ(got.speculation.rule, row.rule);
  }
}

TEST(EngineRules, WhereNobodyGuessesTheTextIsThatOfPlainDecodingWhateverTheRule) {
  const RowFunction rows = random_rows(kVocab, 6, 2.0f);
  const std::vector<Token> want = reference(rows, {1, 2}, 1.0f, 7, 30);
  ScriptedDrafter silent([](DraftRequest&) { return Status(); });
  const FakeVocabulary vocabulary(kVocab);
  for (const AcceptanceRuleTraits& row : kAcceptanceRules) {
    for (const bool asked : {false, true}) {
      FakeModel target(capabilities(), rows);
      Request r = request({1, 2}, 1.0f, 7, 30, 5);
      r.rule = row.rule;
      std::vector<Drafter*> drafters;
      if (asked) drafters.push_back(&silent);
      const Completion got = complete(target, vocabulary, drafters, std::move(r));
      EXPECT_EQ(got.tokens, want) << row.name << (asked ? ", a drafter that has nothing" : "");
    }
  }
}

TEST(EngineRules, ATextWhoseDrafterWasLostHalfWayIsOnlyAsExactAsItsRule) {
  const Exactness exact{
      .kind = Exactness::Kind::kExact, .width = 16, .coverage = "widths 2-16", .reason = ""};
  const RowFunction rows = random_rows(kVocab, 5, 2.0f);
  const FakeVocabulary vocabulary(kVocab);
  for (const AcceptanceRuleTraits& row : kAcceptanceRules) {
    FakeModel target(capabilities(), rows);
    FakeModel same(capabilities(), rows);
    DraftModelDrafter draft(same, kVocab, {});
    Engine engine(target, vocabulary, {&draft});
    Request r = request({1, 2}, 1.0f, 3, 40, 5);
    r.rule = row.rule;
    const RequestId id = *engine.add(std::move(r));
    for (int i = 0; i < 3; ++i) engine.step();
    engine.detach(&draft, "gone");
    run_all(engine);
    const Result<Completion> got = engine.take(id);
    ASSERT_TRUE(got.ok());
    EXPECT_FALSE(got->speculation.enabled);
    EXPECT_GT(got->speculation.drafted, 0);
    EXPECT_EQ(exactness_of(got->speculation, exact).verdict(),
              keeps_text(row.rule) ? "exact" : "distributional")
        << row.name;
  }
}

// Greedy, and never says what a grammar forbids: odd tokens.
class EvenTokens : public FakeSampler {
 public:
  EvenTokens() : FakeSampler(0.0f) {}
  Distribution apply(std::span<const float> logits) override {
    row_.assign(logits.begin(), logits.end());
    for (std::size_t i = 1; i < row_.size(); i += 2) {
      row_[i] = -std::numeric_limits<float>::infinity();
    }
    return FakeSampler::apply(row_);
  }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<EvenTokens>(*this); }

 private:
  std::vector<float> row_;
};

// What the chain forbids, and the target can never say, took the place of right guesses: a branch
// at each node.
TEST(EngineRules, AtTemperatureZeroNothingIsDraftedThatTheGrammarForbids) {
  // An odd token is the likeliest of each row, then an even one, and the others never.
  const RowFunction rows = [](std::span<const Token> context) {
    std::vector<float> row(kVocab, -20.0f);
    const std::size_t next = (static_cast<std::size_t>(context.back()) + context.size()) % 6;
    row[2 * next] = 4.0f;
    row[2 * next + 1] = 5.0f;
    return row;
  };
  const FakeVocabulary vocabulary(kVocab);
  for (const std::int32_t branches : {1, 3}) {
    FakeModel target(capabilities(), rows);
    FakeModel same(capabilities(), rows);
    DraftModelDrafter draft(same, kVocab, {});
    Request r = request({1, 2}, 0.0f, 3, 40, 5);
    r.sampler = std::make_unique<EvenTokens>();
    r.draft.branches = branches;
    r.draft.split_p = 0.05f;
    const Completion got = complete(target, vocabulary, {&draft}, std::move(r));
    EXPECT_GT(got.speculation.drafted, 20);
    EXPECT_EQ(got.speculation.accepted, got.speculation.drafted) << branches;
  }
}

TEST(EngineRules, ABlockOfBranchesIsRefused) {
  FakeModel target(capabilities(), random_rows(kVocab, 5, 2.0f));
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {});
  Request r = request({1}, 1.0f, 3, 4, 5);
  r.rule = AcceptanceRule::kBlock;
  r.draft.branches = 2;
  EXPECT_NE(engine.add(std::move(r)).status().message().find("rule=block"), std::string::npos);
}

}  // namespace
}  // namespace outrider
