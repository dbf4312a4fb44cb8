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

TEST(ListOf, JoinsWithTheSameBetweenAll) {
  EXPECT_EQ(joined({}, ","), "");
  EXPECT_EQ(joined({"a", "b", "c"}, ","), "a,b,c");
  EXPECT_EQ(joined({"", "b"}, ","), ",b");
}

}  // namespace
}  // namespace outrider
