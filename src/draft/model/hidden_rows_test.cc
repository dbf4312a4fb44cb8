#include "draft/model/hidden_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/random.h"
#include "testing/chi_square.h"

namespace outrider {
namespace {

// The state of a token is its id, twice.
void see(HiddenRows& rows, std::size_t position, Token token) {
  const std::array<float, 2> row = {static_cast<float>(token), static_cast<float>(token)};
  rows.see(position, token, row);
}

std::vector<float> before(const HiddenRows& rows, std::size_t first, std::size_t n) {
  std::vector<float> out;
  rows.append_before(first, n, &out);
  return out;
}

TEST(HiddenRows, ATokenComesWithTheStateOfTheOneBeforeAndTheFirstWithZeros) {
  HiddenRows rows(2, 8);
  EXPECT_EQ(before(rows, 0, 1), (std::vector<float>{0, 0}));
  see(rows, 0, 5);
  see(rows, 1, 6);
  EXPECT_EQ(before(rows, 0, 3), (std::vector<float>{0, 0, 5, 5, 6, 6}));
  EXPECT_EQ(before(rows, 2, 1), (std::vector<float>{6, 6}));
}

TEST(HiddenRows, OnlyTheLastRowsAreKept) {
  HiddenRows rows(2, 3);
  for (std::size_t i = 0; i < 10; ++i) see(rows, i, static_cast<Token>(i));
  EXPECT_EQ(rows.begin(), 7U);
  EXPECT_EQ(rows.end(), 10U);
  EXPECT_EQ(before(rows, 8, 3), (std::vector<float>{7, 7, 8, 8, 9, 9}));
}

TEST(HiddenRows, ARowThatComesAgainVoidsAllBehindItAndAGapAllBeforeIt) {
  HiddenRows rows(2, 8);
  for (std::size_t i = 0; i < 5; ++i) see(rows, i, static_cast<Token>(i));
  see(rows, 2, 9);
  EXPECT_EQ(rows.end(), 3U);
  EXPECT_EQ(before(rows, 2, 2), (std::vector<float>{1, 1, 9, 9}));
  see(rows, 6, 4);
  EXPECT_EQ(rows.begin(), 6U);
  EXPECT_EQ(rows.end(), 7U);
}

TEST(HiddenRows, ARowOfAnotherTokenThanTheTextsIsNoticed) {
  HiddenRows rows(2, 8);
  const std::array<Token, 3> text = {3, 4, 5};
  see(rows, 1, 4);
  EXPECT_EQ(rows.check_integrity(text), "");
  see(rows, 2, 6);
  EXPECT_EQ(rows.check_integrity(text), "the row at 2 is of token 6, and the text has 5");
  rows.cut(2);
  EXPECT_EQ(rows.check_integrity(text), "");
}

// Against a map from positions to tokens.
TEST(HiddenRows, AfterAnyRowsAndCutsItHoldsTheLastOnesWithoutGaps) {
  const std::uint64_t seed = testing::test_seed(11);
  for (std::uint32_t run = 0; run < 50; ++run) {
    constexpr std::size_t kWindow = 5;
    HiddenRows rows(2, kWindow);
    std::vector<Token> text(12, kNoToken);  // kNoToken: not known
    for (std::uint32_t i = 0; i < 60; ++i) {
      const NoiseKey key = noise_key(seed, run * 100 + i);
      const std::size_t at = noise_bits(key, 0) % text.size();
      const bool cuts = noise_bits(key, 1) % 4 == 0;
      const std::size_t position = noise_bits(key, 2) % 2 == 0 ? std::min(rows.end(), at) : at;
      const std::size_t end = cuts ? std::min(rows.end(), at) : position + 1;
      const bool gap = !cuts && position > rows.end();
      if (cuts) {
        rows.cut(at);
      } else {
        see(rows, position, static_cast<Token>(i));
        text[position] = static_cast<Token>(i);
      }
      for (std::size_t t = 0; t < text.size(); ++t) {
        const bool behind = t >= end;
        const bool before = !cuts && (t + kWindow < end || (gap && t < position));
        if (behind || before) text[t] = kNoToken;
      }
      const std::ptrdiff_t known =
          std::count_if(text.begin(), text.end(), [](Token t) { return t != kNoToken; });
      ASSERT_EQ(static_cast<std::ptrdiff_t>(rows.end() - rows.begin()), known)
          << "seed " << seed << ", " << run << ", " << i;
      if (known > 0) {
        ASSERT_EQ(rows.end(), end) << "seed " << seed << ", " << run << ", " << i;
      }
      ASSERT_EQ(rows.check_integrity(std::span(text).first(end)), "");
    }
  }
}

// Three times as wide before as behind the encoder, which adds them up.
TEST(HiddenRows, RowsAreEncodedOnceWhereTheyAreAndThoseThatAreGoneNot) {
  HiddenRows rows(1, 4, /*raw_width=*/3);
  const auto see_raw = [&rows](std::size_t position) {
    const std::array<float, 3> row = {static_cast<float>(position), 10.0f, 20.0f};
    rows.see(position, static_cast<Token>(position), row);
  };
  const auto encode = [&rows] {
    std::vector<float> raw;
    rows.append_raw(&raw);
    std::vector<float> encoded;
    for (std::size_t i = 0; i < raw.size(); i += 3) encoded.push_back(raw[i] + raw[i + 1]);
    rows.take_encoded(encoded);
  };
  for (std::size_t i = 0; i < 3; ++i) see_raw(i);
  EXPECT_EQ(rows.n_raw(), 3U);
  encode();
  EXPECT_EQ(rows.n_raw(), 0U);
  EXPECT_EQ(before(rows, 1, 3), (std::vector<float>{10, 11, 12}));
  for (std::size_t i = 3; i < 9; ++i) see_raw(i);  // the window holds four
  EXPECT_EQ(rows.n_raw(), 4U);
  rows.cut(7);
  EXPECT_EQ(rows.n_raw(), 2U);
  encode();
  EXPECT_EQ(before(rows, 6, 2), (std::vector<float>{15, 16}));
  see_raw(7);
  see_raw(6);  // again, and all behind it is void
  EXPECT_EQ(rows.n_raw(), 1U);
  const std::array<Token, 7> text = {0, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(rows.check_integrity(text), "");
  see_raw(20);  // a gap
  EXPECT_EQ(rows.n_raw(), 1U);
}

}  // namespace
}  // namespace outrider
