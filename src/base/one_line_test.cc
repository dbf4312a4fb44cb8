#include "base/one_line.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider {
namespace {

const std::string kShown = "\xEF\xBF\xBD";

TEST(OneLine, ControlCharactersBecomeSpacesAlsoThoseOfTwoBytes) {
  EXPECT_EQ(one_line("a\nb\tc\n\n"), "a b c");
  EXPECT_EQ(one_line("a\033[31mb\x7F"), "a [31mb ");
  EXPECT_EQ(one_line("a\xC2\x9B"
                     "31m"),
            "a 31m")
      << "U+009B";
  EXPECT_EQ(one_line("\xC2\xA0\xC3\x84\xE2\x82\xAC"), "\xC2\xA0\xC3\x84\xE2\x82\xAC");
}

TEST(TerminalText, NoControlCharacterIsLeftButNewlinesAndTabs) {
  EXPECT_EQ(terminal_text("a\n\tb\r\n"), "a\n\tb\n");
  EXPECT_EQ(terminal_text("\033]0;x\a"), kShown + "]0;x" + kShown);
  for (int value = 0; value < 0xA0; ++value) {
    const std::string character = value < 0x80 ? std::string(1, static_cast<char>(value))
                                               : "\xC2" + std::string(1, static_cast<char>(value));
    const bool control = value < 0x20 || value >= 0x7F;
    const std::string wanted = value == '\n' || value == '\t' || !control ? character
                               : value == '\r'                            ? ""
                                                                          : kShown;
    EXPECT_EQ(terminal_text("a" + character + "b"), "a" + wanted + "b") << value;
  }
  EXPECT_EQ(terminal_text("\xC2\xA0\xC3\x9B\xE2\x82\xAC\xFF"), "\xC2\xA0\xC3\x9B\xE2\x82\xAC\xFF");
}

TEST(TerminalText, AControlCharacterThatIsCutBetweenTwoPartsIsNoneEither) {
  EXPECT_EQ(terminal_text("a\xC2"), "a\xC2");
  EXPECT_EQ(terminal_text("\x9B"
                          "1A",
                          '\xC2'),
            kShown + "1A");
  EXPECT_EQ(terminal_text("\x9B", '\xC3'), "\x9B") << "the end of another character";
  EXPECT_EQ(terminal_text("a\xC2\r\x9B"), "a" + kShown) << "nor what a dropped one parts";
}

}  // namespace
}  // namespace outrider
