#include "llama/vocabulary/tokenizer_stack.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider::llama {
namespace {

TEST(TokenizerStack, WhatLiesBetweenTwoSpacesIsOnePieceWithASpaceBeforeIt) {
  EXPECT_EQ(longest_piece(""), 0U);
  EXPECT_EQ(longest_piece("abc"), 3U + 1U);
  EXPECT_EQ(longest_piece("1, two, three"), 6U + 1U);
  EXPECT_EQ(longest_piece("see foo/bar/baz-1 or"), 13U + 1U);
}

TEST(TokenizerStack, WordsWithSpacesBetweenThemAreOneToo) {
  EXPECT_EQ(longest_piece("one two, three."), 7U + 1U);
  EXPECT_EQ(longest_piece("one two\nthree"), 7U + 1U);
}

TEST(TokenizerStack, SoIsARunOfSpacesAndSigns) {
  EXPECT_EQ(longest_piece("1\t\t\t\t\t\t\t\t2"), 8U);
  EXPECT_EQ(longest_piece("a!?/\n/\n /b"), 8U);
}

TEST(TokenizerStack, OtherScriptsHaveWordsThatEndARunOfSigns) {
  const std::string word = "\xE4\xB8\xAD\xE6\x96\x87";  // Chinese
  EXPECT_EQ(longest_piece(word + "\n\n" + word + "\n\n"), 6U + 1U);
  EXPECT_EQ(longest_piece("\xD0\xBF\xD1\x80, \xD0\xBF\xD1\x80, "), 5U + 1U);
  const std::string mark = "\xE0\xA4\xBE";  // of Devanagari: may be a sign, as far as is known
  EXPECT_EQ(longest_piece("1\t" + mark + "\t" + mark + "\t2"), 9U);
}

}  // namespace
}  // namespace outrider::llama
