#include "base/number_from.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace outrider {
namespace {

TEST(NumberFrom, TakesAllOfTheText) {
  EXPECT_EQ(number_from<std::int64_t>("-40"), -40);
  EXPECT_EQ(number_from<std::uint32_t>("007"), 7U);
  EXPECT_EQ(number_from<double>("1e-3"), 0.001);
  EXPECT_EQ(number_from<float>("0.8"), 0.8f);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "0x10", "1.5"}) {
    EXPECT_FALSE(number_from<std::int64_t>(text)) << text;
  }
  EXPECT_FALSE(number_from<double>("1.5.2"));
}

TEST(NumberFrom, RefusesWhatTheTypeDoesNotHold) {
  EXPECT_EQ(number_from<std::int64_t>("9223372036854775807"),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_FALSE(number_from<std::int64_t>("9223372036854775808"));
  EXPECT_FALSE(number_from<std::uint32_t>("-1"));
  EXPECT_FALSE(number_from<std::uint32_t>("4294967296"));
  EXPECT_FALSE(number_from<float>("1e99"));
}

}  // namespace
}  // namespace outrider
