#include "tools/options/usage.h"

#include <gtest/gtest.h>

#include "base/one_line.h"
#include "tools/options/help.h"
#include "tools/options/options.h"
#include "tools/report.h"

namespace outrider::tools {
namespace {

TEST(OptionNames, AreSpelledForMessagesAndTheEnvironment) {
  EXPECT_EQ(spelled("-c,--ctx"), "--ctx");
  EXPECT_EQ(spelled("--color{auto}"), "--color");
  EXPECT_EQ(environment_name("--max-tokens"), "OUTRIDER_MAX_TOKENS");
  EXPECT_EQ(environment_name("cache-type-k"), "OUTRIDER_CACHE_TYPE_K");
}

TEST(ParseInteger, TakesExactlyTheRange) {
  const auto parse = [](const char* text) { return parse_integer("--n", text, {-1, 64}, "fit"); };
  EXPECT_EQ(parse("-1"), -1);
  EXPECT_EQ(parse("64"), 64);
  for (const char* wrong :
       {"-2", "65", "", " 1", "1 ", "+1", "1.0", "0x1", "99999999999999999999"}) {
    EXPECT_THROW(parse(wrong), UsageError) << wrong;
  }
}

TEST(Wrap, BreaksAtSpacesAndKeepsLongWords) {
  EXPECT_EQ(wrap("one two three", 0, 8), "one two\nthree");
  EXPECT_EQ(wrap("one two three", 2, 9), "one two\n  three");
  EXPECT_EQ(wrap("a\nb", 3, 10), "a\n   b");
  EXPECT_EQ(wrap("incomprehensible x", 0, 5), "incomprehensible\nx");
}

TEST(OneLine, LeavesNoControlCharacters) {
  EXPECT_EQ(one_line("a\nb\033[31mc\x7F\n"), "a b [31mc ");
}

}  // namespace
}  // namespace outrider::tools
