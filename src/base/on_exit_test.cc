#include "base/on_exit.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace outrider {
namespace {

TEST(OnExit, ActsOnceAtTheEndOfTheScope) {
  int acted = 0;
  {
    const OnExit act([&acted] { ++acted; });
    EXPECT_EQ(acted, 0);
  }
  EXPECT_EQ(acted, 1);
}

TEST(OnExit, ActsWhenTheScopeEndsByAnException) {
  int acted = 0;
  try {
    const OnExit act([&acted] { ++acted; });
    throw std::runtime_error("x");
  } catch (const std::runtime_error&) {
    EXPECT_EQ(acted, 1);
  }
  EXPECT_EQ(acted, 1);
}

}  // namespace
}  // namespace outrider
