#include "lab/type_costs.h"

#include <gtest/gtest.h>

#include "llama/base/backend.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::lab {
namespace {

llama::Matrix matrix(const char* type, std::uint64_t rows, std::uint64_t columns) {
  return {.name = "m", .type = type, .elements = rows * columns, .columns = columns};
}

std::vector<std::string> names(const TypeCosts& costs) {
  std::vector<std::string> result;
  for (const TypeCost& cost : costs.types) result.push_back(cost.type);
  return result;
}

// A million weights at 1 ns each take a millisecond.
const TypeRuns kSpeeds = {{"q4_0", {1.0}}, {"q4_K", {0.9}}, {"q8_0", {2.0}}, {"f16", {5.0}}};

TEST(TypeCosts, TheCheapestFirstOfThoseThatAllMatricesCanHave) {
  const std::vector<llama::Matrix> matrices = {matrix("q4_0", 1000, 1024),
                                               matrix("q8_0", 500, 512)};
  const TypeCosts costs = type_costs(matrices, kSpeeds);
  EXPECT_DOUBLE_EQ(costs.ms, 1.024 + 2 * 0.256);
  EXPECT_EQ(names(costs), (std::vector<std::string>{"q4_K", "q4_0", "q8_0"})) << "no model is f16";
  EXPECT_DOUBLE_EQ(costs.types[1].ms, 1.28);
  EXPECT_EQ(costs.types[1].bytes, 1280000u / 32 * 18);
  EXPECT_EQ(cheapest_text(costs), "q4_K, 1.15 ms a token, 1.54 as it is");
  EXPECT_EQ(names(type_costs({matrix("q4_0", 10, 96)}, kSpeeds)),
            (std::vector<std::string>{"q4_0", "q8_0"}))
      << "rows of 96 weights have no blocks of 256";
}

TEST(TypeCosts, AFileThatIsAsCheapAsAnyStaysAsItIs) {
  const TypeCosts costs =
      type_costs({matrix("q4_0", 1000, 1024)}, {{"q4_0", {1.0}}, {"q4_K", {0.98}}});
  EXPECT_EQ(cheapest_text(costs), "as it is, 1.02 ms a token (q4_K, 1.00 ms a token)");
}

TEST(TypeCosts, WithinWhatTheTimesVaryNoneIsTheCheapest) {
  const std::string busy = "; the times vary much: is the machine doing something else?";
  const auto said = [](const std::vector<double>& q4_0, const std::vector<double>& q8_0) {
    return cheapest_text(type_costs({matrix("q8_0", 3125, 320)}, {{"q4_0", q4_0}, {"q8_0", q8_0}}));
  };
  const std::string cheaper = "q4_0, 1.00 ms a token, 3.00 as it is";
  EXPECT_EQ(said({9.0, 1.0, 1.02}, {3.0, 3.1, 8.0}), cheaper) << "the slow runs do not count";
  EXPECT_EQ(said({2.0, 1.0, 4.0}, {3.0, 3.1, 8.0}), cheaper + busy) << "twice is less than three";
  EXPECT_EQ(said({1.0, 1.0}, {3.0, 9.1}), "not known (" + cheaper + ")" + busy)
      << "the file as it is may take a third of that";
  EXPECT_EQ(said({1.0, 1.25}, {1.3, 1.3}), "not known (q4_0, 1.00 ms a token, 1.30 as it is)");
  EXPECT_EQ(said({1.0, 2.0}, {1.0, 1.0}),
            "not known (q4_0, 1.00 ms a token, 1.00 as it is)" + busy);
  EXPECT_EQ(cheapest_text(type_costs({matrix("iq2_xxs", 3125, 320)}, {{"q4_0", {1.0, 2.0}}})),
            "not known (q4_0, 1.00 ms a token)" + busy);
  const json::Json object = type_costs_json(
      type_costs({matrix("q8_0", 3125, 320)}, {{"q4_0", {2.0, 1.0}}, {"q8_0", {5.0, 4.0}}}));
  EXPECT_DOUBLE_EQ(object["second_ms"], 5.0);
  EXPECT_DOUBLE_EQ(object["types"][0]["second_ms"], 2.0);
}

TEST(TypeCosts, OfATypeThatWasNotMeasuredNothingIsSaid) {
  const TypeCosts costs = type_costs({matrix("iq2_xxs", 1000, 1024)}, kSpeeds);
  EXPECT_EQ(costs.ms, 0.0);
  EXPECT_EQ(cheapest_text(costs), "q4_K, 0.92 ms a token");
  EXPECT_TRUE(type_costs_json(costs)["ms"].is_null());
  EXPECT_EQ(cheapest_text(TypeCosts{}), "");
}

TEST(TypeCosts, ExpertsCountAsFarAsATokenTakesThem) {
  llama::Matrix experts = matrix("q4_0", 8000, 1024);
  experts.experts = 8;
  experts.experts_used = 2;
  EXPECT_DOUBLE_EQ(type_costs({experts}, kSpeeds).ms, 2.048);
}

TEST(TypeCosts, AreMeasuredForAFile) {
  llama::ensure_backend();
  const testing::TempDir dir;
  const std::string path = dir.file("tiny.gguf");
  ASSERT_TRUE(testing::write_tiny_gguf(path, testing::TinyModelOptions()).ok());
  const Result<TypeCosts> costs = measure_type_costs(path, 2);
  ASSERT_TRUE(costs.ok()) << costs.status().message();
  ASSERT_FALSE(costs->types.empty());
  EXPECT_GT(costs->ms, 0.0);
  for (std::size_t i = 1; i < costs->types.size(); ++i) {
    EXPECT_GE(costs->types[i].ms, costs->types[i - 1].ms);
    EXPECT_GE(costs->types[i].second_ms, costs->types[i].ms);
  }
  EXPECT_FALSE(measure_type_costs(dir.file("missing.gguf"), 1).ok());
}

}  // namespace
}  // namespace outrider::lab
