#include "llama/sampling/sampler_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"
#include "dist/gumbel.h"
#include "llama/base/handles.h"
#include "testing/chi_square.h"

namespace outrider::llama {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// What llama.cpp does, from all candidates on, with every sampler of its default chain in place.
std::vector<llama_token_data> llama_says(const SamplingOptions& o, const std::vector<float>& row) {
  llama_sampler_chain_params params = llama_sampler_chain_default_params();
  const SamplerHandle chain(llama_sampler_chain_init(params));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_top_k(o.top_k));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_typical(o.typical_p, 0));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_top_p(o.top_p, 0));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_min_p(o.min_p, 0));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_temp(o.temperature));
  std::vector<llama_token_data> data;
  for (std::size_t i = 0; i < row.size(); ++i) {
    // The typical sampler does not bear p = 0 (docs/bugs.md).
    if (o.typical_p < 1.0f && row[i] == -kInfinity) continue;
    data.push_back({.id = static_cast<llama_token>(i), .logit = row[i], .p = 0.0f});
  }
  llama_token_data_array array{
      .data = data.data(), .size = data.size(), .selected = -1, .sorted = false};
  llama_sampler_apply(chain.get(), &array);
  return {array.data, array.data + array.size};
}

enum class Shape { kPlain, kSharp, kFlat, kRounded, kMasked };

std::vector<float> random_row(std::mt19937& random, std::size_t n, Shape shape) {
  const float spread = shape == Shape::kSharp ? 6.0f : shape == Shape::kFlat ? 0.02f : 2.5f;
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> row(n);
  for (float& value : row) {
    value = normal(random);
    if (shape == Shape::kRounded) value = std::round(value * 8.0f) / 8.0f;  // many ties
    if (shape == Shape::kMasked && random() % 10 != 0) value = -kInfinity;
  }
  return row;
}

std::string describe(const SamplingOptions& o) {
  return "temp " + std::to_string(o.temperature) + " top-k " + std::to_string(o.top_k) +
         " typical " + std::to_string(o.typical_p) + " top-p " + std::to_string(o.top_p) +
         " min-p " + std::to_string(o.min_p);
}

// Ids and bits of the logits must be llama.cpp's, in its order.
void expect_same(const SamplingOptions& options, const std::vector<float>& row) {
  SCOPED_TRACE(describe(options) + ", " + std::to_string(row.size()) + " values");
  const std::vector<llama_token_data> expected = llama_says(options, row);
  Result<std::unique_ptr<Sampler>> sampler =
      make_sampler(options, static_cast<std::int32_t>(row.size()));
  ASSERT_TRUE(sampler.ok()) << sampler.status().message();
  for (int call = 0; call < 2; ++call) {  // the second with the memory of the first
    const Distribution q = (*sampler)->apply(row);
    EXPECT_EQ(q.scale, 1.0f);
    ASSERT_EQ(q.size(), expected.size());
    for (std::size_t i = 0; i < q.size(); ++i) {
      ASSERT_EQ(q.token(i), expected[i].id) << "candidate " << i;
      ASSERT_EQ(std::memcmp(&q.logits[i], &expected[i].logit, sizeof(float)), 0)
          << "candidate " << i << ": " << q.logits[i] << " and " << expected[i].logit;
    }
  }
}

unsigned test_seed() { return static_cast<unsigned>(testing::test_seed(4711)); }

TEST(SamplerChainTest, EveryChainLeavesWhatLlamaLeaves) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("OUTRIDER_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<SamplingOptions> chains{
      {},  // the default
      {.temperature = 1.0f},
      {.temperature = 0.7f, .top_p = 1.0f, .min_p = 0.0f},
      {.top_k = 1},
      {.top_k = 0},
      {.top_k = 0, .top_p = 1.0f},
      {.top_k = 0, .min_p = 0.0f},
      {.top_k = 200, .min_p = 0.0f},
      {.top_k = 5000},
      {.top_k = 0, .top_p = 0.5f, .min_p = 0.3f},
      {.temperature = 1.0f, .top_k = 0, .top_p = 0.0f, .min_p = 0.0f},
      {.top_k = 20, .typical_p = 0.8f},
      {.top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .typical_p = 0.5f},
      {.temperature = 0.0f, .top_p = 1.0f, .min_p = 0.0f, .typical_p = 0.9f},
      {.temperature = 3.0f, .top_k = 0, .top_p = 1.0f, .min_p = 1e-6f},
      {.temperature = 1.5f, .top_k = 3, .top_p = 0.01f, .min_p = 1.0f}};
  for (const Shape shape :
       {Shape::kPlain, Shape::kSharp, Shape::kFlat, Shape::kRounded, Shape::kMasked}) {
    for (const std::size_t n : {std::size_t{30}, std::size_t{300}, std::size_t{20011}}) {
      const std::vector<float> row = random_row(random, n, shape);
      for (const SamplingOptions& options : chains) expect_same(options, row);
    }
  }
}

TEST(SamplerChainTest, TiesAtTheEdgeOfTopKAreCutAsLlamaCutsThem) {
  std::mt19937 random(test_seed());
  for (int i = 0; i < 30; ++i) {
    std::vector<float> row = random_row(random, 9000, Shape::kPlain);
    std::vector<float> sorted = row;
    std::sort(sorted.begin(), sorted.end(), std::greater<float>());
    // The 40th best value three times more, at random places.
    for (int k = 0; k < 3; ++k) row[random() % row.size()] = sorted[39];
    expect_same({}, row);
    // And two equal ones among the best.
    row[random() % row.size()] = sorted[5];
    expect_same({}, row);
  }
}

TEST(SamplerChainTest, FewerPossibleTokensThanTopKIsFine) {
  std::vector<float> row(9000, -kInfinity);
  row[17] = 1.0f;
  row[4000] = 2.0f;
  row[8999] = 0.5f;
  expect_same({}, row);
}

std::vector<Token> tokens_of(const SamplingOptions& options, const std::vector<float>& row) {
  const std::unique_ptr<Sampler> sampler =
      make_sampler(options, static_cast<std::int32_t>(row.size())).value();
  const Distribution q = sampler->apply(row);
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < q.size(); ++i) tokens.push_back(q.token(i));
  return tokens;
}

// As llama.cpp has it one impossible token makes ten times as many of the others stay.
TEST(SamplerChainTest, TypicalTokensAreTheSameBesideImpossibleOnes) {
  std::mt19937 random(test_seed());
  const std::vector<float> row = random_row(random, 1000, Shape::kPlain);
  SamplingOptions options{.temperature = 1.0f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f};
  options.typical_p = 0.3f;
  const std::vector<Token> typical = tokens_of(options, row);
  ASSERT_LT(typical.size(), 300U);
  const std::ptrdiff_t least = std::min_element(row.begin(), row.end()) - row.begin();
  options.logit_bias = {{static_cast<Token>(least), -kInfinity}};
  EXPECT_EQ(tokens_of(options, row), typical);
  std::vector<float> far = row;
  far[static_cast<std::size_t>(least)] = -200.0f;  // whose p is 0, too
  options.logit_bias.clear();
  EXPECT_EQ(tokens_of(options, far), typical);
  options.top_n_sigma = 3.0f;
  for (const Token token : tokens_of(options, row)) {
    EXPECT_NE(std::find(typical.begin(), typical.end(), token), typical.end());
  }
}

TEST(SamplerChainTest, ABiasHoweverLargeKeepsItsToken) {
  std::mt19937 random(test_seed());
  const std::vector<float> row = random_row(random, 1000, Shape::kPlain);
  for (const float bias : {100.0f, 1e8f, 1e9f, 3e38f}) {
    for (const std::int32_t top_k : {0, 40, 200}) {
      const SamplingOptions options{.temperature = 1.0f,
                                    .top_k = top_k,
                                    .top_p = 0.9f,
                                    .min_p = 0.0f,
                                    .logit_bias = {{5, bias}}};
      EXPECT_EQ(tokens_of(options, row), std::vector<Token>{5}) << bias << ", top-k " << top_k;
    }
  }
}

TEST(SamplerChainTest, APenaltyHoweverLargeKeepsTheTokenThatItRaises) {
  std::mt19937 random(test_seed());
  std::vector<float> row = random_row(random, 1000, Shape::kPlain);
  row[5] = 1.0f;
  for (const SamplingOptions& penalty :
       {SamplingOptions{.repeat_penalty = 1e-9f}, SamplingOptions{.repeat_penalty = 1e-38f},
        SamplingOptions{.frequency_penalty = -1e9f}, SamplingOptions{.presence_penalty = -3e38f}}) {
    for (const std::int32_t top_k : {0, 200}) {
      SamplingOptions options = penalty;
      options.temperature = 1.0f;
      options.top_k = top_k;
      options.top_p = 0.9f;
      options.min_p = 0.0f;
      const std::unique_ptr<Sampler> sampler =
          make_sampler(options, static_cast<std::int32_t>(row.size())).value();
      sampler->accept(5);
      const Distribution q = sampler->apply(row);
      ASSERT_EQ(q.size(), 1U) << "repeat " << options.repeat_penalty << ", top-k " << top_k;
      EXPECT_EQ(q.token(0), 5);
      EXPECT_TRUE(std::isfinite(q.logits[0]));
    }
  }
}

TEST(SamplerChainTest, NanCountsAsImpossible) {
  std::mt19937 random(test_seed());
  const std::vector<float> clean = random_row(random, 9000, Shape::kMasked);
  std::vector<float> dirty = clean;
  for (float& value : dirty) {
    if (value == -kInfinity) value = std::numeric_limits<float>::quiet_NaN();
  }
  for (const SamplingOptions& options :
       {SamplingOptions{}, SamplingOptions{.top_k = 0}, SamplingOptions{.temperature = 0.0f}}) {
    std::unique_ptr<Sampler> a = make_sampler(options, 9000).value();
    std::unique_ptr<Sampler> b = make_sampler(options, 9000).value();
    const Distribution p = a->apply(clean);
    const Distribution q = b->apply(dirty);
    ASSERT_EQ(p.size(), q.size());
    for (std::size_t i = 0; i < p.size(); ++i) EXPECT_EQ(p.token(i), q.token(i));
  }
}

TEST(SamplerChainTest, AtTemperatureZeroOneCandidateIsLeft) {
  std::unique_ptr<Sampler> sampler = make_sampler({.temperature = 0.0f}, 5).value();
  const std::vector<float> row{0.0f, 3.0f, -1.0f, 3.0f, 2.0f};
  const Distribution q = sampler->apply(row);
  ASSERT_EQ(q.size(), 1u);
  EXPECT_EQ(q.token(0), 1) << "of equals the lowest id";
  EXPECT_EQ(q.logits[0], 3.0f);
}

TEST(SamplerChainTest, TemperatureAloneIsAViewOfTheRow) {
  const SamplingOptions options{.temperature = 0.5f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f};
  std::unique_ptr<Sampler> sampler = make_sampler(options, 3).value();
  const std::vector<float> row{1.0f, 2.0f, 3.0f};
  const Distribution q = sampler->apply(row);
  EXPECT_EQ(q.logits.data(), row.data());
  EXPECT_TRUE(q.tokens.empty());
  EXPECT_EQ(q.scale, 2.0f);
}

TEST(SamplerChainTest, WhenNothingIsPossibleTheDistributionIsEmpty) {
  const std::vector<float> row(9000, -kInfinity);
  for (const SamplingOptions& options :
       {SamplingOptions{}, SamplingOptions{.top_k = 0}, SamplingOptions{.temperature = 0.0f},
        SamplingOptions{.top_k = 0, .top_p = 1.0f}}) {
    EXPECT_EQ(make_sampler(options, 9000).value()->apply(row).size(), 0u) << describe(options);
  }
}

TEST(SamplerChainTest, SuppressedTokensAreNeverLeft) {
  std::mt19937 random(test_seed());
  const std::vector<float> row = random_row(random, 9000, Shape::kPlain);
  const Token best = static_cast<Token>(std::max_element(row.begin(), row.end()) - row.begin());
  const std::vector<Token> suppressed{best, 3};
  for (const SamplingOptions& options :
       {SamplingOptions{}, SamplingOptions{.temperature = 0.0f},
        SamplingOptions{.top_k = 0, .top_p = 1.0f, .min_p = 0.0f}}) {
    std::unique_ptr<Sampler> sampler = make_sampler(options, 9000, suppressed).value();
    const Distribution q = sampler->apply(row);
    ASSERT_GT(q.size(), 0u);
    for (std::size_t i = 0; i < q.size(); ++i) {
      if (q.token(i) == best || q.token(i) == 3) {
        EXPECT_EQ(q.logits[i], -kInfinity) << describe(options);
      }
    }
  }
}

TEST(SamplerChainTest, ACloneGivesTheSameAndOutlivesItsOriginal) {
  std::mt19937 random(test_seed());
  const std::vector<float> row = random_row(random, 9000, Shape::kPlain);
  for (const SamplingOptions& options :
       {SamplingOptions{}, SamplingOptions{.top_k = 0, .top_p = 1.0f, .min_p = 0.1f},
        SamplingOptions{.temperature = 0.0f}, SamplingOptions{.top_k = 0, .min_p = 0.0f}}) {
    std::unique_ptr<Sampler> original = make_sampler(options, 9000).value();
    const Distribution q = original->apply(row);
    const std::vector<float> logits(q.logits.begin(), q.logits.end());
    const std::vector<Token> tokens(q.tokens.begin(), q.tokens.end());
    std::unique_ptr<Sampler> copy = original->clone();
    EXPECT_FALSE(copy->has_state());
    original.reset();
    const Distribution r = copy->apply(row);
    EXPECT_EQ(logits, std::vector<float>(r.logits.begin(), r.logits.end()));
    EXPECT_EQ(tokens, std::vector<Token>(r.tokens.begin(), r.tokens.end()));
  }
}

TEST(SamplerChainTest, OptionsOutOfRangeAreRefusedByName) {
  const Status status = make_sampler({.top_p = 1.5f}, 10).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("top_p"), std::string::npos) << status.message();
}

TEST(SamplerChainTest, MirostatTakesTheLikeliestTokenHoweverLowTheTemperature) {
  std::mt19937 random(test_seed());
  std::vector<float> row = random_row(random, 1000, Shape::kPlain);
  row[777] = 21.0f;
  row[12] = 18.0f;
  for (const std::int32_t version : {1, 2}) {
    for (const float t : {1e-3f, 1e-6f, 1e-7f, 5e-8f, 1e-8f, 1e-12f, 1e-30f, 1.2e-38f, 4e-39f}) {
      EXPECT_EQ(tokens_of({.temperature = t, .mirostat = version}, row), std::vector<Token>{777})
          << "mirostat " << version << ", temperature " << t;
    }
    EXPECT_EQ(
        tokens_of({.temperature = 0.02f, .mirostat = version, .logit_bias = {{5, 1e8f}}}, row),
        std::vector<Token>{5});
  }
}

// Above all others, in the order of the row, and finite, so that differences are numbers.
void expect_the_best(const Distribution& q, const std::vector<float>& row, Token best) {
  ASSERT_GT(q.size(), 1U);
  for (std::size_t i = 0; i < q.size(); ++i) {
    EXPECT_TRUE(std::isfinite(q.logits[i])) << q.logits[i];
    for (std::size_t k = 0; k < q.size(); ++k) {
      const auto logit = [&](std::size_t n) { return row[static_cast<std::size_t>(q.token(n))]; };
      EXPECT_EQ(logit(i) < logit(k), q.logits[i] < q.logits[k]);
    }
  }
  for (std::uint64_t position = 0; position < 20; ++position) {
    EXPECT_EQ(perturbed_argmax(q, noise_key(3, position)), best);
  }
}

TEST(SamplerChainTest, ATemperatureOfAlmostZeroTakesTheLikeliestToken) {
  for (const float offset : {0.0f, -100.0f}) {  // where all are negative, too
    std::vector<float> row(1000, 1.0f + offset);
    row[700] = 21.0f + offset;
    row[100] = 20.0f + offset;
    row[200] = 19.5f + offset;
    for (const float t : {1e-30f, 7e-38f, 5e-38f, 1.17549435e-38f, 4e-39f}) {
      SCOPED_TRACE("temperature " + std::to_string(t * 1e30f) + "e-30");
      const std::unique_ptr<Sampler> sampler = make_sampler({.temperature = t}, 1000).value();
      expect_the_best(sampler->apply(row), row, 700);
    }
  }
}

TEST(SamplerChainTest, ADynamicTemperatureOfAlmostZeroTakesTheLikeliestToken) {
  std::mt19937 random(test_seed());
  std::vector<float> row = random_row(random, 1000, Shape::kFlat);
  row[700] = 30.0f;
  row[100] = 22.0f;
  row[200] = 21.5f;
  for (const float exponent : {10.0f, 12.0f, 13.0f, 14.0f, 15.0f, 16.0f, 20.0f}) {
    SamplingOptions options{.temperature = 0.5f, .top_p = 1.0f, .min_p = 0.0f};
    options.dynatemp_range = 0.5f;
    options.dynatemp_exponent = exponent;
    const std::unique_ptr<Sampler> sampler = make_sampler(options, 1000).value();
    const Distribution q = sampler->apply(row);
    ASSERT_GT(q.size(), 1U);
    EXPECT_TRUE(std::isfinite(*std::max_element(q.logits.begin(), q.logits.end())));
    EXPECT_EQ(perturbed_argmax(q, noise_key(3, 1)), 700) << "exponent " << exponent;
  }
}

TEST(SamplerChainTest, ATemperatureTooSmallToDivideByIsGreedy) {
  std::unique_ptr<Sampler> sampler =
      make_sampler({.temperature = 1e-40f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f}, 3).value();
  const std::vector<float> row{1.0f, 2.0f, 1.5f};
  const Distribution q = sampler->apply(row);
  ASSERT_EQ(q.size(), 1u);
  EXPECT_EQ(q.token(0), 1);
}

}  // namespace
}  // namespace outrider::llama
