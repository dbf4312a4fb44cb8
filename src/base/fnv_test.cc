#include "base/fnv.h"

#include <gtest/gtest.h>

#include <string_view>

namespace outrider {
namespace {

std::uint64_t of(std::string_view bytes) {
  Fnv1a hash;
  hash.add(bytes);
  return hash.value();
}

// Published ones.
TEST(Fnv1a, HasTheValuesOfItsStandard) {
  EXPECT_EQ(of(""), 0xCBF29CE484222325U);
  EXPECT_EQ(of("a"), 0xAF63DC4C8601EC8CU);
  EXPECT_EQ(of("foobar"), 0x85944171F73967E8U);
}

TEST(Fnv1a, ANumberIsItsFourBytesLowestFirst) {
  Fnv1a number;
  number.add(std::uint32_t{0x64636261});
  EXPECT_EQ(number.value(), of("abcd"));
}

TEST(Fnv1a, ANullByteCounts) { EXPECT_NE(of(std::string_view("\0", 1)), of("")); }

}  // namespace
}  // namespace outrider
