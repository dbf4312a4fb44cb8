#include "testing/tiny_gguf_lag.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "testing/tiny_dir.h"
#include "testing/tiny_runner.h"

namespace outrider::testing {
namespace {

TinyLagOptions lag_options(TinyLagArchitecture architecture) {
  TinyLagOptions options;
  options.architecture = architecture;
  if (architecture != TinyLagArchitecture::kLlama) options.mtp = {TinyHead::kEqual};
  return options;
}

class TinyLagTest : public ::testing::TestWithParam<TinyLagArchitecture> {
 protected:
  TinyRunner load(const TinyLagOptions& options) {
    const Status status = write_tiny_lag(dir_.file("lag.gguf"), options);
    EXPECT_TRUE(status.ok()) << status.message();
    TinyRunnerOptions runner;
    runner.kv_type = GGML_TYPE_F16;
    Result<TinyRunner> result = TinyRunner::load(dir_.file("lag.gguf"), runner);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return std::move(*result);
  }
  TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(Architectures, TinyLagTest,
                         ::testing::Values(TinyLagArchitecture::kLlama, TinyLagArchitecture::kHyV3,
                                           TinyLagArchitecture::kQwen35),
                         [](const ::testing::TestParamInfo<TinyLagArchitecture>& kind) {
                           return tiny_lag_architecture_name(kind.param);
                         });

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

TEST_P(TinyLagTest, TheNextTokenDependsOnTheLastThreeAndOnNothingElse) {
  TinyRunner runner = load(lag_options(GetParam()));
  const std::vector<Token> text = {kTinyBos, 90, 91, 290, 92, 80, 81, 82};
  const std::vector<float> logits = runner.logits(text).value().back();
  for (std::size_t i = 1; i < text.size(); ++i) {
    std::vector<Token> other = text;
    other[i] = 99;
    const double difference = largest_difference(logits, runner.logits(other).value().back());
    if (i + 3 >= text.size()) {
      EXPECT_GT(difference, 1.0) << "token " << i;
    } else {
      EXPECT_LT(difference, 1e-3) << "token " << i;
    }
  }
}

TEST_P(TinyLagTest, TextIsVaried) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    TinyLagOptions options = lag_options(GetParam());
    options.seed = seed;
    TinyRunner runner = load(options);
    const std::vector<Token> text =
        runner.greedy(runner.tokenize("Once upon a time", true, false), 200).value();
    EXPECT_GE(std::set<Token>(text.begin(), text.end()).size(), 30U) << "seed " << seed;
  }
}

TEST_P(TinyLagTest, OtherLagsAndWeightTypesWork) {
  for (const WeightType type : {WeightType::kQ8_0, WeightType::kQ4_0}) {
    TinyLagOptions options = lag_options(GetParam());
    options.mtp.clear();
    options.lags = {2, 5};
    options.reads_current = false;
    options.weight_type = type;
    TinyRunner runner = load(options);
    const std::vector<Token> text = {kTinyBos, 90, 91, 290, 92, 80, 81, 82};
    const std::vector<float> logits = runner.logits(text).value().back();
    for (std::size_t i = 1; i < text.size(); ++i) {
      std::vector<Token> other = text;
      other[i] = 99;
      const double difference = largest_difference(logits, runner.logits(other).value().back());
      const bool read = i + 3 == text.size() || i + 6 == text.size();
      EXPECT_EQ(difference > 0.5, read)
          << weight_type_name(type) << " token " << i << ": " << difference;
    }
  }
}

TEST(TinyLag, RefusesWhatCannotBe) {
  const TempDir dir;
  const auto refused = [&](const TinyLagOptions& options) {
    const Status status = write_tiny_lag(dir.file("lag.gguf"), options);
    return status.code() == StatusCode::kInvalidArgument;
  };
  TinyLagOptions options;
  options.mtp = {TinyHead::kEqual};
  EXPECT_TRUE(refused(options));  // llama
  options.architecture = TinyLagArchitecture::kHyV3;
  EXPECT_FALSE(refused(options));
  options.lags = {1, 3};
  EXPECT_TRUE(refused(options));
  options.mtp.clear();
  EXPECT_FALSE(refused(options));
  options.lags = {2, 2};
  EXPECT_TRUE(refused(options));
  options = TinyLagOptions();
  options.architecture = TinyLagArchitecture::kQwen35;
  options.mtp = {TinyHead::kEqual, TinyHead::kEqual};
  EXPECT_TRUE(refused(options));
}

}  // namespace
}  // namespace outrider::testing
