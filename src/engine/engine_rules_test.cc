// The acceptance rules through the whole engine, on the hand-written model.
#include <gtest/gtest.h>

#include "testing/chi_square.h"
#include "testing/fake_engine.h"
#include "testing/sanitized.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

// A vocabulary of four, so that texts of three tokens have a thousand draws each.
constexpr std::int32_t kSmall = 4;
constexpr std::size_t kLength = 3;

Capabilities small_capabilities() {
  return {.n_vocab = kSmall,
          .n_ctx = 16,
          .n_batch = 32,
          .n_sequences = 8,
          .rollback = Rollback::kAny,
          .max_leaves = 8,
          .max_width = 16};
}

// The chance of each text of three tokens, by the definition.
std::vector<double> chances_of_texts(const RowFunction& rows, const std::vector<Token>& prompt) {
  std::vector<double> chances;
  for (Token a = 0; a < kSmall; ++a) {
    for (Token b = 0; b < kSmall; ++b) {
      for (Token c = 0; c < kSmall; ++c) {
        std::vector<Token> text = prompt;
        double chance = 1.0;
        for (const Token t : {a, b, c}) {
          const std::vector<float> row = rows(text);
          chance *= probabilities({.logits = row})[static_cast<std::size_t>(t)];
          text.push_back(t);
        }
        chances.push_back(chance);
      }
    }
  }
  return chances;
}

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
    std::vector<std::int64_t> counts(expected.size(), 0);
    std::int64_t accepted = 0;
    std::uint64_t begun = 0;
    std::vector<RequestId> running;
    while (begun < kTexts || !running.empty()) {
      while (begun < kTexts && running.size() < 8) {
        Request r =
            request(prompt, 1.0f, seed + begun, static_cast<std::int32_t>(kLength), c.width);
        r.rule = c.rule;
        r.draft = {.branches = c.branches, .split_p = 0.05f};
        const Result<RequestId> id = engine.add(std::move(r));
        ASSERT_TRUE(id.ok()) << id.status().message();
        running.push_back(*id);
        ++begun;
      }
      engine.step();
      std::erase_if(running, [&](RequestId id) {
        const Result<Completion> done = engine.take(id);
        if (!done.ok()) return false;
        EXPECT_EQ(done->tokens.size(), kLength);
        accepted += done->speculation.accepted;
        const std::vector<Token>& t = done->tokens;
        ++counts[static_cast<std::size_t>((t[0] * kSmall + t[1]) * kSmall + t[2])];
        return true;
      });
    }
    EXPECT_GT(testing::chi_square_p(counts, expected), 0.001)
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
