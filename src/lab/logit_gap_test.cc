#include "lab/logit_gap.h"

#include <cmath>

#include <gtest/gtest.h>

#include "dist/gumbel.h"

namespace outrider::lab {
namespace {

// Keeps the `n` first tokens.
class KeepFirst : public Sampler {
 public:
  explicit KeepFirst(std::size_t n) : n_(n) {}
  Distribution apply(std::span<const float> logits) override {
    tokens_.clear();
    for (std::size_t i = 0; i < n_; ++i) tokens_.push_back(static_cast<Token>(i));
    return {.logits = logits.first(n_), .tokens = tokens_};
  }
  void accept(Token) override {}
  bool has_state() const override { return false; }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<KeepFirst>(n_); }

 private:
  std::size_t n_;
  std::vector<Token> tokens_;
};

RecordedRow row_of(std::vector<float> logits, std::vector<Token> kept) {
  return {.logits = std::move(logits), .kept = std::move(kept)};
}

double noise(NoiseKey key, Token token) {
  const std::vector<float> zero(static_cast<std::size_t>(token) + 1, 0.0f);
  for (const PerturbedChoice& choice :
       perturbed_top_reference({.logits = zero}, key, zero.size())) {
    if (choice.token == token) return choice.score;
  }
  return 0.0;
}

TEST(LogitGap, AtTemperatureZeroIsTheDifferenceOfTheLogits) {
  const RecordedRow row = row_of({1.0f, 4.0f, 3.75f}, {1});
  EXPECT_DOUBLE_EQ(logit_gap(row, 0.0f, noise_key(1, 2), 1, 2), 0.25);
  EXPECT_DOUBLE_EQ(logit_gap(row, 0.0f, noise_key(1, 2), 1, 0), 3.0);
}

TEST(LogitGap, AtATemperatureIsTheDifferenceOfThePerturbedScoresInLogits) {
  const NoiseKey key = noise_key(7, 100);
  const RecordedRow row = row_of({1.0f, 2.0f, 3.0f}, {0, 1, 2});
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    const double expected =
        std::abs((2.0 + temperature * noise(key, 1)) - (3.0 + temperature * noise(key, 2)));
    EXPECT_NEAR(logit_gap(row, temperature, key, 1, 2), expected, 1e-6);
    EXPECT_NEAR(logit_gap(row, temperature, key, 2, 1), expected, 1e-6)
        << "symmetric without a cut";
  }
}

TEST(LogitGap, ATokenThatTheChainCutOffCountsItsDistanceToTheEdge) {
  const RecordedRow row = row_of({5.0f, 4.0f, 3.99f, 0.0f}, {0, 1});
  EXPECT_NEAR(logit_gap(row, 1.0f, noise_key(1, 1), 0, 2), 0.01, 1e-6);
  EXPECT_NEAR(logit_gap(row, 1.0f, noise_key(1, 1), 0, 3), 4.0, 1e-6);
}

TEST(LogitGap, ThePlainTokenAtTheEdgeExplainsAnyOtherChoice) {
  const RecordedRow row = row_of({5.0f, 4.0f, 3.99f, 0.0f}, {0, 1});
  EXPECT_LE(logit_gap(row, 1.0f, noise_key(1, 1), 1, 0), 0.0101);
}

TEST(RecordingSampler, KeepsTheRowOfTheWantedCallAndChangesNothing) {
  RecordedRow row;
  const std::unique_ptr<Sampler> sampler =
      make_recording_sampler(std::make_unique<KeepFirst>(2), 1, row);
  const std::vector<std::vector<float>> rows = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(row.recorded(), i > 1);
    const Distribution q = sampler->apply(rows[i]);
    EXPECT_EQ(q.size(), 2U);
    EXPECT_EQ(q.logits[0], rows[i][0]);
  }
  EXPECT_EQ(row.logits, rows[1]);
  EXPECT_EQ(row.kept, (std::vector<Token>{0, 1}));
}

}  // namespace
}  // namespace outrider::lab
