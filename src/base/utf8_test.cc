#include "base/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace outrider {
namespace {

// The obvious decoder: assembles the code point and compares it with what the length allows.
// Returns the length of the valid character at the start of `text`, or 0.
std::size_t reference_character(std::string_view text) {
  const std::uint32_t first = static_cast<std::uint8_t>(text[0]);
  std::size_t length = 0;
  std::uint32_t code = 0;
  if (first < 0x80) return 1;
  if ((first & 0xE0) == 0xC0) {
    length = 2;
    code = first & 0x1F;
  } else if ((first & 0xF0) == 0xE0) {
    length = 3;
    code = first & 0x0F;
  } else if ((first & 0xF8) == 0xF0) {
    length = 4;
    code = first & 0x07;
  } else {
    return 0;
  }
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    const std::uint32_t byte = static_cast<std::uint8_t>(text[i]);
    if ((byte & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3F);
  }
  const std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < smallest[length] || code > 0x10FFFF) return 0;
  if (code >= 0xD800 && code <= 0xDFFF) return 0;
  return length;
}

std::optional<std::size_t> reference_first_invalid(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = reference_character(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

// Tail that could still become a character, by trying continuations: some of 80, 90, A0, BF fit.
bool can_become_valid(std::string_view tail) {
  if (reference_character(tail) == tail.size()) return false;
  const std::string_view choices = "\x80\x90\xA0\xBF";
  for (const char a : choices) {
    std::string one = std::string(tail) + a;
    if (reference_character(one) == one.size()) return true;
    for (const char b : choices) {
      std::string two = one + b;
      if (reference_character(two) == two.size()) return true;
      for (const char c : choices) {
        std::string three = two + c;
        if (reference_character(three) == three.size()) return true;
      }
    }
  }
  return false;
}

std::size_t reference_complete_prefix(std::string_view text) {
  for (std::size_t back = std::min<std::size_t>(text.size(), 3); back >= 1; --back) {
    if (can_become_valid(text.substr(text.size() - back))) return text.size() - back;
  }
  return text.size();
}

TEST(Utf8Test, AllStringsOfUpToThreeBytesAgreeWithTheObviousDecoder) {
  std::string text;
  for (int length = 1; length <= 3; ++length) {
    text.assign(static_cast<std::size_t>(length), '\0');
    for (std::uint32_t n = 0; n < 1u << (8 * length); ++n) {
      // Below 0x7F ASCII bytes behave alike; leave most out of the longest strings.
      if (length == 3 && (n & 0xFF) < 0x7E) continue;
      for (int i = 0; i < length; ++i) {
        text[static_cast<std::size_t>(i)] = static_cast<char>(n >> (8 * (length - 1 - i)) & 0xFF);
      }
      ASSERT_EQ(first_invalid_utf8(text), reference_first_invalid(text))
          << "bytes " << std::hex << n;
    }
  }
}

TEST(Utf8Test, AllSecondBytesOfFourByteCharactersAgreeWithTheObviousDecoder) {
  for (int first = 0xEF; first <= 0xFF; ++first) {
    for (int second = 0; second <= 0xFF; ++second) {
      for (const char third : {'\x7F', '\x80', '\xBF', '\xC0'}) {
        for (const char fourth : {'\x7F', '\x80', '\xBF', '\xC0'}) {
          const std::string text{static_cast<char>(first), static_cast<char>(second), third,
                                 fourth};
          ASSERT_EQ(first_invalid_utf8(text), reference_first_invalid(text));
        }
      }
    }
  }
}

TEST(Utf8Test, TheHeldBackTailIsTheOneThatCanStillBecomeACharacter) {
  for (std::uint32_t n = 0; n < 1u << 16; ++n) {
    for (const char first : {'a', '\x80', '\xC3', '\xE0', '\xE2', '\xED', '\xF0', '\xF1', '\xF4'}) {
      const std::string text{first, static_cast<char>(n >> 8), static_cast<char>(n & 0xFF)};
      ASSERT_EQ(complete_utf8_prefix(text), reference_complete_prefix(text))
          << std::hex << static_cast<int>(static_cast<std::uint8_t>(first)) << " " << n;
    }
  }
}

TEST(Utf8Test, TheOffsetOfTheFirstMalformedSequenceIsGiven) {
  EXPECT_EQ(first_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("plain"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("ab\xFF"), 2u);
  EXPECT_EQ(first_invalid_utf8("ab\xC3"), 2u) << "cut short by the end";
  EXPECT_EQ(first_invalid_utf8(std::string_view("a\0b\x80", 4)), 3u);
  EXPECT_EQ(first_invalid_utf8("\xED\xA0\x80"), 0u) << "a surrogate";
}

TEST(Utf8Test, WhatIsNoCharacterIsReplacedAndTheRestIsAsItWas) {
  EXPECT_EQ(with_replacements(""), "");
  EXPECT_EQ(with_replacements("a\u00e9\u4e2d"), "a\u00e9\u4e2d");
  EXPECT_EQ(with_replacements("\xff"), "\uFFFD");
  EXPECT_EQ(with_replacements("a\xe2\x96n\x81z"), "a\uFFFD\uFFFDn\uFFFDz");
  const std::string text = "x\xe2\x96n \xff\u4e2d\x81y";
  std::string before;
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const std::string_view part = std::string_view(text).substr(0, n);
    const std::string now = with_replacements(part.substr(0, complete_utf8_prefix(part)));
    EXPECT_TRUE(now.starts_with(before)) << n;
    EXPECT_FALSE(first_invalid_utf8(now)) << n;
    before = now;
  }
}

TEST(Utf8Test, ARefusalNamesTheByteAndItsOffset) {
  EXPECT_TRUE(check_utf8("", "the text").ok());
  EXPECT_TRUE(check_utf8("a\xC3\xA9z", "the text").ok());
  const Status cut = check_utf8("ab\xC3", "the text");
  EXPECT_EQ(cut.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(cut.message(),
            "the text is not valid UTF-8: byte 0xC3 at offset 2 is not part of a character");
  EXPECT_EQ(check_utf8("\x80", "'a file'").message(),
            "'a file' is not valid UTF-8: byte 0x80 at offset 0 is not part of a character");
}

TEST(Utf8Test, ATailIsHeldBackUntilItsLastByteArrives) {
  const std::string smile = "hi \xF0\x9F\x98\x80";
  EXPECT_EQ(complete_utf8_prefix(smile.substr(0, 3)), 3u);
  EXPECT_EQ(complete_utf8_prefix(smile.substr(0, 4)), 3u);
  EXPECT_EQ(complete_utf8_prefix(smile.substr(0, 5)), 3u);
  EXPECT_EQ(complete_utf8_prefix(smile.substr(0, 6)), 3u);
  EXPECT_EQ(complete_utf8_prefix(smile), 7u);
  EXPECT_EQ(complete_utf8_prefix(""), 0u);
  EXPECT_EQ(complete_utf8_prefix("\x80\x80\x80\x80\x80"), 5u) << "never becomes valid";
}

}  // namespace
}  // namespace outrider
