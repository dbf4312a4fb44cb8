#include "model/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace outrider {
namespace {

TEST(SamplingOptions, DefaultsAndTheEndsOfTheRangesAreValid) {
  EXPECT_TRUE(validate(SamplingOptions{}).ok());
  EXPECT_TRUE(validate({.temperature = 0.0f, .top_k = -1, .top_p = 1.0f, .min_p = 0.0f}).ok());
  EXPECT_TRUE(validate({.temperature = 100.0f, .min_p = 1.0f}).ok());
}

TEST(SamplingOptions, EachValueOutOfRangeIsRefusedByItsOptionsName) {
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<SamplingOptions, std::string>> bad = {
      {{.temperature = -0.1f}, "--temp is"}, {{.temperature = nan}, "--temp is"},
      {{.temperature = inf}, "--temp is"},   {{.top_p = 0.0f}, "--top-p is"},
      {{.top_p = 1.1f}, "--top-p is"},       {{.top_p = nan}, "--top-p is"},
      {{.min_p = -0.1f}, "--min-p is"},      {{.min_p = 1.1f}, "--min-p is"},
      {{.typical_p = 0.0f}, "--typical is"}, {{.typical_p = 2.0f}, "--typical is"},
  };
  for (const auto& [options, message] : bad) {
    const Status status = validate(options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message().find(message), 0U) << status.message();
  }
}

}  // namespace
}  // namespace outrider
