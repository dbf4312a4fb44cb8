#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider {
namespace {

TEST(Utf8, ValidTextHasNoInvalidByte) {
  EXPECT_EQ(first_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("plain"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"), std::nullopt);
}

TEST(Utf8, TheFirstInvalidByteIsNamed) {
  EXPECT_EQ(first_invalid_utf8("ab\xFF"), 2U);
  EXPECT_EQ(first_invalid_utf8("a\xC0\x80"), 1U);          // overlong
  EXPECT_EQ(first_invalid_utf8("\xED\xA0\x80"), 0U);       // surrogate
  EXPECT_EQ(first_invalid_utf8("\xF4\x90\x80\x80"), 0U);   // above U+10FFFF
  EXPECT_EQ(first_invalid_utf8("abc\xE2\x82"), 3U);        // cut off
}

TEST(Utf8, EveryCutOfEveryCharacterIsHeldBackAndOnlyThat) {
  // All two-byte starts, and samples of three and four bytes, encoded by hand here.
  for (std::uint32_t point = 0x80; point <= 0x10FFFF; point += point < 0x3000 ? 1 : 0x101) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    std::string c;
    if (point < 0x800) {
      c = {static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 63))};
    } else if (point < 0x10000) {
      c = {static_cast<char>(0xE0 | point >> 12), static_cast<char>(0x80 | (point >> 6 & 63)),
           static_cast<char>(0x80 | (point & 63))};
    } else {
      c = {static_cast<char>(0xF0 | point >> 18), static_cast<char>(0x80 | (point >> 12 & 63)),
           static_cast<char>(0x80 | (point >> 6 & 63)), static_cast<char>(0x80 | (point & 63))};
    }
    ASSERT_EQ(first_invalid_utf8(c), std::nullopt) << point;
    for (std::size_t cut = 1; cut <= c.size(); ++cut) {
      const std::string text = "xy" + c.substr(0, cut);
      ASSERT_EQ(complete_utf8_prefix(text), cut < c.size() ? 2U : text.size()) << point;
    }
  }
}

TEST(Utf8, BytesThatNeverBecomeValidAreNotHeldBack) {
  EXPECT_EQ(complete_utf8_prefix("a\xFF"), 2U);
  EXPECT_EQ(complete_utf8_prefix("a\x80"), 2U);
  EXPECT_EQ(complete_utf8_prefix("a\xC3\xC3"), 2U);  // the second C3 may still become a character
  EXPECT_EQ(complete_utf8_prefix("a\xE2\x28"), 3U);
}

}  // namespace
}  // namespace outrider
