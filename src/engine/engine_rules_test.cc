// The acceptance rules through the whole engine, on the hand-written model.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/short_texts_test.h"
#include "testing/chi_square.h"
#include "testing/fake_engine.h"
#include "testing/sanitized.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

// Who guesses. Scripts give no probabilities: their guesses are taken as certain.
enum class Guessers {
  kDraft,         // a draft that is right now and then
  kDraftAndLast,  // and a script that is surer than it: the last token again
  kLastAndDraft,
  kRight,     // a draft that says what the target says
  kUnlikely,  // a script: always what the target is least likely to say
  kForeign,   // a script: tokens that no vocabulary has
  kForeignAndDraft,
};

struct RuleCase {
  AcceptanceRule rule;
  std::int32_t branches;
  std::int32_t width;
  Guessers guessers;
  std::int32_t max_leaves = 8;  // of the target
  bool million = true;          // draws; else 300,000
};

std::vector<RuleCase> rule_cases() {
  std::vector<RuleCase> cases = {
      {AcceptanceRule::kCoupled, 1, 4, Guessers::kDraft},
      {AcceptanceRule::kCoupled, 3, 6, Guessers::kDraftAndLast},
      {AcceptanceRule::kRejection, 1, 4, Guessers::kDraft},
      {AcceptanceRule::kRejection, 3, 6, Guessers::kDraftAndLast},
      {AcceptanceRule::kRejection, 1, 2, Guessers::kDraftAndLast},
      {AcceptanceRule::kBlock, 1, 3, Guessers::kDraftAndLast},
      {AcceptanceRule::kRejection, 3, 4, Guessers::kLastAndDraft, 1},
      {AcceptanceRule::kBlock, 1, 4, Guessers::kDraft},
      {AcceptanceRule::kRejection, 3, 6, Guessers::kForeignAndDraft, 8, false},
      {AcceptanceRule::kBlock, 1, 4, Guessers::kForeignAndDraft, 8, false}};
  for (const AcceptanceRule rule : {AcceptanceRule::kRejection, AcceptanceRule::kBlock}) {
    for (const Guessers who : {Guessers::kRight, Guessers::kUnlikely, Guessers::kForeign}) {
      cases.push_back({rule, 1, 4, who, 8, false});
    }
  }
  return cases;
}

// The guesses of the case's script, if it has one.
Script script_of(Guessers who, const RowFunction& rows) {
  if (who == Guessers::kUnlikely) {
    return [rows](DraftRequest& r) {
      std::vector<Token> text(r.text.begin(), r.text.end());
      std::vector<Token> guesses;
      for (std::int32_t i = 0; i < r.max_nodes; ++i) {
        const std::vector<float> row = rows(text);
        text.push_back(static_cast<Token>(std::min_element(row.begin(), row.end()) - row.begin()));
        guesses.push_back(text.back());
      }
      add_chain(r, guesses);
      return Status();
    };
  }
  if (who == Guessers::kForeign || who == Guessers::kForeignAndDraft) {
    return [](DraftRequest& r) {
      add_chain(r, std::vector<Token>{kSmall, 1 << 30, -5});
      return Status();
    };
  }
  return [](DraftRequest& r) {
    r.tree->add(kRoot, r.text.back(), 0.9f, r.mask);
    return Status();
  };
}

std::vector<Drafter*> in_order(Guessers who, Drafter* draft, Drafter* script) {
  if (who == Guessers::kDraft || who == Guessers::kRight) return {draft};
  if (who == Guessers::kUnlikely || who == Guessers::kForeign) return {script};
  if (who == Guessers::kDraftAndLast) return {draft, script};
  return {script, draft};
}

// Guesses of a text that are accepted, at least and at most. Two can be: the last token is never
// guessed.
std::pair<double, double> accepted_of_a_text(Guessers who) {
  if (who == Guessers::kForeign) return {0.0, 0.0};
  if (who == Guessers::kUnlikely) return {0.1, 0.3};  // 0.18 by the target's own chances
  if (who == Guessers::kRight) return {1.5, 2.0};
  return {0.5, 2.0};
}

// A third of a million texts of three tokens for each rule: a million draws.
TEST(EngineRules, AMillionDrawsOfEveryRuleFollowTheTarget) {
  const std::uint64_t seed = testing::test_seed(20261121);
  const RowFunction rows = random_rows(kSmall, 3, 1.5f);
  const std::vector<Token> prompt = {1, 2};
  const std::vector<double> expected = chances_of_texts(rows, prompt);
  constexpr std::uint64_t kTexts = testing::kSanitized ? 20000 : 333334;
  for (const RuleCase& c : rule_cases()) {
    SCOPED_TRACE("rule " + std::to_string(static_cast<int>(c.rule)) + ", " +
                 std::to_string(c.branches) + " branches, guessers " +
                 std::to_string(static_cast<int>(c.guessers)));
    Capabilities target_capabilities = small_capabilities();
    target_capabilities.max_leaves = c.max_leaves;
    FakeModel target(target_capabilities, rows);
    const float noise = c.guessers == Guessers::kRight ? 0.0f : 1.0f;
    FakeModel small(small_capabilities(), noisy_rows(rows, 9, noise));
    DraftModelDrafter draft(small, kSmall, {});
    ScriptedDrafter script(script_of(c.guessers, rows));
    const FakeVocabulary vocabulary(kSmall);
    Engine engine(target, vocabulary, in_order(c.guessers, &draft, &script));
    std::int64_t accepted = 0;
    const auto nth = [&](std::uint64_t i) {
      Request r = request(prompt, 1.0f, seed + i, static_cast<std::int32_t>(kLength), c.width);
      r.rule = c.rule;
      r.draft = {.branches = c.branches, .split_p = 0.05f};
      return r;
    };
    const std::uint64_t n = c.million ? kTexts : kTexts * 3 / 10;
    const std::vector<std::int64_t> counts = counts_of_texts(engine, n, nth, &accepted);
    EXPECT_GT(testing::chi_square_p(counts, expected), testing::least_p());
    const std::pair<double, double> bounds = accepted_of_a_text(c.guessers);
    const double mean = static_cast<double>(accepted) / static_cast<double>(n);
    EXPECT_GE(mean, bounds.first) << "drafts must have been at work";
    EXPECT_LE(mean, bounds.second) << "guesses that must be wrong were right";
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
