#include "llama/vocabulary/tokenizer_stack.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider::llama {
namespace {

TEST(TokenizerStack, WordsAndWhatLiesBetweenThemAreCountedApart) {
  EXPECT_EQ(longest_piece(""), 0U);
  EXPECT_EQ(longest_piece("abc"), 3U);
  EXPECT_EQ(longest_piece("one two, three"), 5U + 2U);
  EXPECT_EQ(longest_piece("!?/\n/\n a"), 7U + 1U);
}

TEST(TokenizerStack, WhatIsNotAsciiMayBeEither) {
  const std::string dot = "\xE3\x80\x82";  // a full stop
  EXPECT_EQ(longest_piece(dot + "!" + dot + "!"), 8U + 3U);
  EXPECT_EQ(longest_piece("a" + dot + "b"), 5U + 3U);
}

}  // namespace
}  // namespace outrider::llama
