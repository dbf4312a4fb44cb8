// The acceptance rules with chains that remember the text, and behind steps without guesses.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "engine/short_texts_test.h"
#include "testing/chi_square.h"
#include "testing/fake_engine.h"
#include "testing/sanitized.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

// What the chain of a text saw and learned: each token, with the row that it was last asked about.
struct Learned {
  std::vector<std::vector<float>> rows;
  std::vector<Token> tokens;
};

// Says that it has a state, as mirostat does, which learns from the row that a token came from.
class LearningSampler : public FakeSampler {
 public:
  LearningSampler(float temperature, Learned* learned)
      : FakeSampler(temperature), learned_(learned) {}
  Distribution apply(std::span<const float> logits) override {
    row_.assign(logits.begin(), logits.end());
    return FakeSampler::apply(logits);
  }
  void accept(Token token) override {
    if (learned_ == nullptr) return;
    learned_->rows.push_back(row_);
    learned_->tokens.push_back(token);
  }
  bool has_state() const override { return true; }
  // Copies belong to those who look ahead, and are not what the text learns.
  std::unique_ptr<Sampler> clone() const override {
    return std::make_unique<LearningSampler>(*this, nullptr);
  }
  LearningSampler(const LearningSampler& other, Learned* learned)
      : FakeSampler(other), learned_(learned), row_(other.row_) {}

 private:
  Learned* learned_;
  std::vector<float> row_;
};

TEST(EngineRulesMemory, AChainThatRemembersLearnsFromTheRowItsTokenCameFrom) {
  const RowFunction rows = random_rows(kVocab, 5, 2.0f);
  const std::vector<Token> prompt = {1, 2};
  const FakeVocabulary vocabulary(kVocab);
  for (const AcceptanceRuleTraits& rule : kAcceptanceRules) {
    for (const bool drafted : {true, false}) {
      SCOPED_TRACE(std::string(rule.name) + (drafted ? "" : ", without a drafter"));
      FakeModel target(capabilities(), rows);
      FakeModel small(capabilities(), noisy_rows(rows, 9, 1.0f));
      DraftModelDrafter draft(small, kVocab, {});
      std::vector<Drafter*> drafters;
      if (drafted) drafters.push_back(&draft);
      Learned learned;
      Request r = request(prompt, 1.0f, 3, 50, 5);
      r.rule = rule.rule;
      r.sampler = std::make_unique<LearningSampler>(1.0f, &learned);
      const Completion got = complete(target, vocabulary, drafters, std::move(r));
      ASSERT_EQ(learned.tokens, got.tokens);
      std::vector<Token> text = prompt;
      for (std::size_t i = 0; i < got.tokens.size(); ++i) {
        ASSERT_EQ(learned.rows[i], rows(text)) << "token " << i;
        text.push_back(got.tokens[i]);
      }
      if (!drafted) continue;
      EXPECT_GT(got.speculation.accepted, 0);
      EXPECT_LT(got.speculation.accepted, got.speculation.drafted);
    }
  }
}

// What a chain makes of a row behind a text that ends with `last`: that token is half as likely, or
// (kNoToken) nothing.
void halve(std::vector<float>& row, Token last) {
  if (last != kNoToken) row[static_cast<std::size_t>(last)] -= std::log(2.0f);
}

class HalvingSampler : public FakeSampler {
 public:
  HalvingSampler() : FakeSampler(1.0f) {}
  void begin(std::span<const Token> prompt, std::uint64_t) override { last_ = prompt.back(); }
  Distribution apply(std::span<const float> logits) override {
    row_.assign(logits.begin(), logits.end());
    halve(row_, last_);
    return FakeSampler::apply(row_);
  }
  void accept(Token token) override { last_ = token; }
  bool has_state() const override { return true; }
  std::unique_ptr<Sampler> clone() const override {
    return std::make_unique<HalvingSampler>(*this);
  }

 private:
  Token last_ = kNoToken;
  std::vector<float> row_;
};

constexpr std::uint64_t kManyTexts = testing::kSanitized ? 20000 : 100000;

TEST(EngineRulesMemory, AMillionDrawsFollowTheTargetBehindAChainThatRemembers) {
  const std::uint64_t seed = testing::test_seed(20261129);
  const RowFunction rows = random_rows(kSmall, 3, 1.5f);
  const std::vector<Token> prompt = {1, 2};
  const std::vector<double> expected = chances_of_texts(rows, prompt, halve);
  for (const AcceptanceRuleTraits& rule : kAcceptanceRules) {
    FakeModel target(small_capabilities(), rows);
    FakeModel small(small_capabilities(), noisy_rows(rows, 9, 1.0f));
    DraftModelDrafter draft(small, kSmall, {});
    const FakeVocabulary vocabulary(kSmall);
    Engine engine(target, vocabulary, {&draft});
    std::int64_t accepted = 0;
    const auto nth = [&](std::uint64_t i) {
      Request r = request(prompt, 1.0f, seed + i, static_cast<std::int32_t>(kLength), 4);
      r.rule = rule.rule;
      r.sampler = std::make_unique<HalvingSampler>();
      return r;
    };
    const std::vector<std::int64_t> counts = counts_of_texts(engine, kManyTexts, nth, &accepted);
    EXPECT_GT(chi_square_p(counts, expected), 1e-5) << rule.name;
    EXPECT_LT(chi_square_p(counts, chances_of_texts(rows, prompt)), 1e-5)
        << "the chain must have been at work";
    EXPECT_GT(accepted, static_cast<std::int64_t>(kManyTexts / 3)) << rule.name;
  }
}

// A step without guesses takes the target's noise of its token, and the next step begins at that
// token: what it decides must not come from the same noise.
TEST(EngineRulesMemory, AMillionDrawsFollowTheTargetBehindAStepWithoutGuesses) {
  const std::uint64_t seed = testing::test_seed(20261129);
  const RowFunction rows = random_rows(kSmall, 3, 1.5f);
  const std::vector<Token> prompt = {1, 2};
  const std::vector<double> expected = chances_of_texts(rows, prompt);
  for (const AcceptanceRuleTraits& rule : kAcceptanceRules) {
    FakeModel target(small_capabilities(), rows);
    ScriptedDrafter late([&prompt](DraftRequest& r) {
      if (r.text.size() > prompt.size()) r.tree->add(kRoot, r.text.back(), 0.9f, r.mask);
      return Status();
    });
    const FakeVocabulary vocabulary(kSmall);
    Engine engine(target, vocabulary, {&late});
    std::int64_t accepted = 0;
    const auto nth = [&](std::uint64_t i) {
      Request r = request(prompt, 1.0f, seed + i, static_cast<std::int32_t>(kLength), 3);
      r.rule = rule.rule;
      return r;
    };
    const std::vector<std::int64_t> counts = counts_of_texts(engine, kManyTexts, nth, &accepted);
    EXPECT_GT(chi_square_p(counts, expected), 1e-5) << rule.name;
    EXPECT_GT(accepted, static_cast<std::int64_t>(kManyTexts / 20)) << rule.name;
  }
}

}  // namespace
}  // namespace outrider
