#include "base/list_of.h"

#include <gtest/gtest.h>

#include <array>

namespace outrider {
namespace {

TEST(ListOf, JoinsAsPeopleDo) {
  EXPECT_EQ(list_of({}), "");
  EXPECT_EQ(list_of({"a"}), "a");
  EXPECT_EQ(list_of({"a", "b"}), "a and b");
  EXPECT_EQ(list_of({"a", "b", "c"}, " or "), "a, b or c");
}

TEST(ListOf, JoinsNames) {
  constexpr std::array<std::string_view, 3> kNames = {"a", "b", "c"};
  EXPECT_EQ(list_of_names({}), "");
  EXPECT_EQ(list_of_names(kNames), "a, b and c");
  EXPECT_EQ(list_of_names(kNames, " or "), "a, b or c");
}

TEST(ListOf, JoinsWithTheSameBetweenAll) {
  EXPECT_EQ(joined({}, ","), "");
  EXPECT_EQ(joined({"a", "b", "c"}, ","), "a,b,c");
  EXPECT_EQ(joined({"", "b"}, ","), ",b");
}

}  // namespace
}  // namespace outrider
