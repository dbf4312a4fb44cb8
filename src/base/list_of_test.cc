#include "base/list_of.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(ListOf, JoinsAsPeopleDo) {
  EXPECT_EQ(list_of({}), "");
  EXPECT_EQ(list_of({"a"}), "a");
  EXPECT_EQ(list_of({"a", "b"}), "a and b");
  EXPECT_EQ(list_of({"a", "b", "c"}, " or "), "a, b or c");
}

}  // namespace
}  // namespace outrider
