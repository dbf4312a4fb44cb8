#include "base/nearest.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

const std::vector<std::string> kOptions = {"--ctx",  "--threads", "--max-tokens",
                                           "--temp", "--top-k",   "--width"};

TEST(Nearest, FindsTypingMistakes) {
  EXPECT_EQ(nearest("--widht", kOptions), "--width") << "swapped";
  EXPECT_EQ(nearest("--thread", kOptions), "--threads") << "left out";
  EXPECT_EQ(nearest("--ttemp", kOptions), "--temp") << "inserted";
  EXPECT_EQ(nearest("--max_tokens", kOptions), "--max-tokens") << "changed";
}

TEST(Nearest, TakesABeginning) { EXPECT_EQ(nearest("--max", kOptions), "--max-tokens"); }

TEST(Nearest, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest("--grammar", kOptions), "");
  EXPECT_EQ(nearest("--x", kOptions), "") << "too short to guess";
  EXPECT_EQ(nearest("", kOptions), "");
  EXPECT_EQ(nearest("--", kOptions), "");
  EXPECT_EQ(nearest("--temp", {}), "");
}

TEST(Nearest, DoesNotCompareWhatNobodyTyped) {
  const std::string endless(10'000'000, 'x');
  EXPECT_EQ(nearest(endless, {"--ctx", endless}), "");
}

}  // namespace
}  // namespace outrider
