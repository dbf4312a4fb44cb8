#include "threads/deep_stack.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace outrider {
namespace {

// Takes some 4 KiB of the stack for each level.
[[gnu::noinline]] std::size_t descend(std::size_t levels) {
  volatile char frame[4096];
  frame[levels % sizeof frame] = 1;
  return levels == 0 ? frame[0] * 0U : descend(levels - 1) + frame[levels % sizeof frame];
}

TEST(DeepStack, HoldsWhatTheCallersWouldNot) {
  std::size_t reached = 0;
  constexpr std::size_t kLevels = 8192;  // 32 MiB; more where a sanitizer looks on
  const Status status =
      call_with_stack(std::size_t{256} << 20, [&reached] { reached = descend(kLevels); });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(reached, kLevels);
}

TEST(DeepStack, OneThatNobodyHasIsAnError) {
  bool called = false;
  const Status status = call_with_stack(std::size_t{1} << 56, [&called] { called = true; });
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace outrider
