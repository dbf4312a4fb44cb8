#include "base/numbers.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace outrider {
namespace {

// The same memory is the same text in every message.
TEST(Numbers, MemoryIsSaidToAHundredthOfAGibibyte) {
  constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;
  EXPECT_EQ(gibibytes(0), "0.00 GiB");
  EXPECT_EQ(gibibytes(16 * kGibibyte - kGibibyte / 25), "15.96 GiB");
  EXPECT_EQ(gibibytes(std::uint64_t{1} << 52), "4194304.00 GiB");
}

}  // namespace
}  // namespace outrider
