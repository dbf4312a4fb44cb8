#include "testing/tiny_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

#include "ggml.h"

namespace outrider::testing {
namespace {

TEST(TinyWeights, GaussiansHaveMeanZeroAndDeviationOne) {
  const std::uint64_t key = tensor_key(1, "some.weight");
  const int n = 200000;
  double sum = 0.0;
  double squares = 0.0;
  double neighbours = 0.0;
  for (int i = 0; i < n; ++i) {
    const double value = tiny_gaussian(key, static_cast<std::uint64_t>(i));
    sum += value;
    squares += value * value;
    neighbours += value * tiny_gaussian(key, static_cast<std::uint64_t>(i) + 1);
  }
  // Fixed keys, so these are facts, not chances; the bounds are about 4 standard errors.
  EXPECT_NEAR(sum / n, 0.0, 0.01);
  EXPECT_NEAR(squares / n, 1.0, 0.015);
  EXPECT_NEAR(neighbours / n, 0.0, 0.01);
  EXPECT_NE(tensor_key(1, "a"), tensor_key(1, "b"));
  EXPECT_NE(tensor_key(1, "a"), tensor_key(2, "a"));
}

// Read back by ggml's own code, so that the block layout is really ggml's.
TEST(TinyWeights, QuantisedValuesComeBackWithinHalfAStep) {
  const std::uint64_t key = tensor_key(3, "blocks");
  std::vector<float> values;
  values.reserve(64 * 32);
  for (int i = 0; i < 64 * 32; ++i) {
    values.push_back(static_cast<float>(tiny_gaussian(key, static_cast<std::uint64_t>(i)) * 0.3));
  }
  for (int i = 0; i < 32; ++i) values[static_cast<std::size_t>(i)] = 0.0F;  // a block of zeros
  for (const auto& [type, ggml, steps] : {std::tuple(WeightType::kQ8_0, GGML_TYPE_Q8_0, 127.0F),
                                          std::tuple(WeightType::kQ4_0, GGML_TYPE_Q4_0, 8.0F)}) {
    const std::vector<std::uint8_t> bytes = encode_weights(values, type);
    ASSERT_EQ(bytes.size(), ggml_row_size(ggml, static_cast<std::int64_t>(values.size())));
    std::vector<float> back(values.size());
    ggml_get_type_traits(ggml)->to_float(bytes.data(), back.data(),
                                         static_cast<std::int64_t>(back.size()));
    for (std::size_t block = 0; block < values.size(); block += 32) {
      float largest = 0.0F;
      for (std::size_t i = block; i < block + 32; ++i) {
        largest = std::max(largest, std::fabs(values[i]));
      }
      // Half a step; Q4_0 has 8 steps on the side of the largest value and 7 on the other, where a
      // value may lose a whole one. The half-precision scale adds a thousandth.
      const float slack =
          largest / steps * (type == WeightType::kQ4_0 ? 1.0F : 0.5F) + largest * 1e-3F;
      for (std::size_t i = block; i < block + 32; ++i) {
        EXPECT_NEAR(back[i], values[i], slack) << weight_type_name(type) << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace outrider::testing
