#include "base/wrap.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(Wrap, BreaksAtSpacesAndKeepsLongWords) {
  EXPECT_EQ(wrap("one two three", 0, 8), "one two\nthree");
  EXPECT_EQ(wrap("one two three", 2, 9), "one two\n  three");
  EXPECT_EQ(wrap("a\nb", 3, 10), "a\n   b");
  EXPECT_EQ(wrap("incomprehensible x", 0, 5), "incomprehensible\nx");
}

}  // namespace
}  // namespace outrider
