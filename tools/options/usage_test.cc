#include "tools/options/usage.h"

#include <cstdlib>

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

TEST(HelpWidth, IsWhatIsKnownUpToAHundredElseEighty) {
  constexpr int kNoTerminal = -1;
  const char* const before = std::getenv("COLUMNS");
  const std::string kept = before == nullptr ? "" : before;
  const auto width = [](const char* columns) {
    setenv("COLUMNS", columns, /*overwrite=*/1);
    return help_width(kNoTerminal);
  };
  EXPECT_EQ(width("72"), 72U);
  EXPECT_EQ(width("100"), 100U);
  EXPECT_EQ(width("300"), 100U);
  EXPECT_EQ(width("3"), 40U);
  for (const char* nothing : {"", "0", "-5", "wide", "99999999999"}) {
    EXPECT_EQ(width(nothing), 80U) << nothing;
  }
  unsetenv("COLUMNS");
  EXPECT_EQ(help_width(kNoTerminal), 80U);
  if (before != nullptr) setenv("COLUMNS", kept.c_str(), /*overwrite=*/1);
}

TEST(Filled, JoinsTheLinesOfAParagraphAndKeepsExamples) {
  EXPECT_EQ(filled("one two\nthree four\n  an example   that is kept\nfive", 9),
            "one two\nthree\nfour\n  an example   that is kept\nfive\n");
  EXPECT_EQ(filled("one\n\ntwo\n", 80), "one\n\ntwo\n");
  EXPECT_EQ(filled("", 80), "");
}

TEST(OneLine, LeavesNoControlCharacters) {
  EXPECT_EQ(one_line("a\nb\033[31mc\x7F\n"), "a b [31mc ");
}

}  // namespace
}  // namespace outrider::tools
