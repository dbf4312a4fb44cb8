#include "engine/output.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace outrider {
namespace {

struct Spoken {
  std::string text;
  FinishReason reason;
  std::string stop;
  std::size_t tokens;
  std::vector<std::string> releases;  // what each take() gave
};

// Speaks `pieces` in blocks of `block` tokens with a take() after each block, as steps do.
Spoken speak(OutputLimits limits, const std::vector<std::string>& pieces, std::size_t block,
             Token end = kNoToken) {
  Output output(std::move(limits));
  std::vector<std::string> releases;
  const auto release = [&] {
    std::string text;
    for (const Piece& piece : output.take()) text += piece.text;
    releases.push_back(text);
  };
  for (std::size_t i = 0; i < pieces.size() && !output.finished(); ++i) {
    const Token id = static_cast<Token>(i);
    output.accept(id, pieces[i], id == end, kByTarget);
    if ((i + 1) % block == 0) release();
  }
  output.finish(FinishReason::kCancelled);
  release();
  return {output.text(), output.finish_reason(), output.stop(), output.tokens().size(), releases};
}

OutputLimits limits(std::vector<std::string> stop, std::int64_t max_tokens = -1) {
  return {.stop = std::move(stop), .max_tokens = max_tokens, .context_tokens = 1000};
}

// All ways to cut `text` into pieces, as bit masks of cuts.
std::vector<std::string> cut(const std::string& text, unsigned mask) {
  std::vector<std::string> pieces(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    pieces.back() += text[i];
    if ((mask >> i & 1) != 0 && i + 1 < text.size()) pieces.emplace_back();
  }
  return pieces;
}

// What must come out, reading byte by byte: the stop that completes first, of those the longest.
std::string expected_text(const std::string& text, const std::vector<std::string>& stops,
                          std::string* matched) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::string best;
    for (const std::string& s : stops) {
      if (s.size() <= end && text.substr(end - s.size(), s.size()) == s && s.size() > best.size()) {
        best = s;
      }
    }
    if (best.empty()) continue;
    *matched = best;
    return text.substr(0, end - best.size());
  }
  matched->clear();
  return text;
}

TEST(Output, AStopStringCutsTheSameTextHoweverItIsTokenisedAndBlocked) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"hello ENDing", {"END"}},
      {"abababac", {"abac"}},
      {"aaaaaab", {"aab"}},
      {"xbcabcd", {"abcd", "bc"}},
      {"one two", {"two", "wo"}},
      {"no stop at", {"zzz"}},
      {"ends with EN", {"END"}},
      {"END first", {"END"}},
      {"a\nb\n\nc", {"\n\n"}},
      {"caf\xC3\xA9 ok", {"\xA9"}},
      {"\xE2\x82\xAC\xE2\x82\xAC", {"\xE2\x82\xAC"}},
  };
  for (const auto& [text, stops] : cases) {
    std::string matched;
    const std::string want = expected_text(text, stops, &matched);
    for (unsigned mask = 0; mask < (1U << (text.size() - 1)); mask += 1 + mask / 64) {
      const std::vector<std::string> pieces = cut(text, mask);
      for (const std::size_t block : {1U, 2U, 3U, 16U}) {
        const Spoken got = speak(limits(stops), pieces, block);
        ASSERT_EQ(got.text, want) << text << " mask " << mask << " block " << block;
        ASSERT_EQ(got.stop, matched);
        ASSERT_EQ(got.reason, matched.empty() ? FinishReason::kCancelled : FinishReason::kStop);
        std::string joined;
        for (const std::string& r : got.releases) joined += r;
        ASSERT_EQ(joined, want);
      }
    }
  }
}

TEST(Output, NothingIsShownThatAStopStringLaterTakesBack) {
  // Every release is a prefix of the final text: held back while it could still become the stop.
  const std::string text = "say ababac now";
  for (unsigned mask = 0; mask < (1U << 13); ++mask) {
    const Spoken got = speak(limits({"abac"}), cut(text, mask), 1);
    std::string shown;
    for (const std::string& r : got.releases) shown += r;
    ASSERT_EQ(shown, "say ab");
  }
}

TEST(Output, APartialStopStringIsReleasedWhenItTurnsOutHarmless) {
  const Spoken got = speak(limits({"END"}), {"a", " E", "N", "x"}, 1);
  EXPECT_EQ(got.releases, (std::vector<std::string>{"a", "", "", " ENx", ""}));
}

TEST(Output, APartialStopStringIsFlushedOnceAtTheEnd) {
  const Spoken got = speak(limits({"END"}, 2), {"a", "EN", "D"}, 1);
  EXPECT_EQ(got.text, "aEN");
  EXPECT_EQ(got.reason, FinishReason::kLength);
  EXPECT_EQ(got.tokens, 2U);
}

TEST(Output, MultibyteCharactersComeWhole) {
  const std::string text = "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80z";
  for (unsigned mask = 0; mask < (1U << (text.size() - 1)); ++mask) {
    const Spoken got = speak(limits({}), cut(text, mask), 1);
    EXPECT_EQ(got.text, text);
    for (const std::string& r : got.releases) {
      ASSERT_EQ(first_invalid_utf8(r), std::nullopt) << "mask " << mask;
    }
  }
}

TEST(Output, AnUnfinishedCharacterIsFlushedOnceAtTheEnd) {
  const Spoken got = speak(limits({}, 2), {"a", "\xE2\x82", "\xAC"}, 1);
  EXPECT_EQ(got.releases, (std::vector<std::string>{"a", "\xE2\x82", ""}));
  const Spoken cancelled = speak(limits({}), {"a", "\xE2\x82"}, 1);
  EXPECT_EQ(cancelled.releases, (std::vector<std::string>{"a", "", "\xE2\x82"}));
}

TEST(Output, AnEndTokenStopsAndIsPartOfTheTokens) {
  const Spoken got = speak(limits({}), {"a", "b", "", "c"}, 16, /*end=*/2);
  EXPECT_EQ(got.text, "ab");
  EXPECT_EQ(got.tokens, 3U);
  EXPECT_EQ(got.reason, FinishReason::kStop);
  EXPECT_EQ(got.stop, "");
}

TEST(Output, AStopWinsOverTheLimitInTheSameToken) {
  EXPECT_EQ(speak(limits({"b"}, 2), {"a", "b", "c"}, 16).reason, FinishReason::kStop);
  EXPECT_EQ(speak(limits({}, 2), {"a", "b", "c"}, 16, /*end=*/1).reason, FinishReason::kStop);
  EXPECT_EQ(speak(limits({}, 2), {"a", "b", "c"}, 16).reason, FinishReason::kLength);
}

TEST(Output, TheLimitIsExactAtEveryOffsetOfABlock) {
  const std::vector<std::string> pieces(20, "x");
  for (std::int64_t n = 1; n <= 20; ++n) {
    for (const std::size_t block : {1U, 3U, 7U}) {
      const Spoken got = speak(limits({}, n), pieces, block);
      EXPECT_EQ(got.tokens, static_cast<std::size_t>(n));
    }
  }
}

TEST(Output, TheContextsEdgeEndsWithLength) {
  const Spoken got =
      speak({.stop = {}, .max_tokens = -1, .context_tokens = 3}, {"a", "b", "c", "d"}, 16);
  EXPECT_EQ(got.tokens, 3U);
  EXPECT_EQ(got.reason, FinishReason::kLength);
}

TEST(Output, ATokenIsCutWhereAStopStringTookAllItsBytes) {
  const std::string text = "say abac";
  for (unsigned mask = 0; mask < (1U << 7); ++mask) {
    Output output(limits({"abac"}));
    std::string whole;
    output.accept(1, "", false, kByTarget);
    for (const std::string& piece : cut(text, mask)) output.accept(2, piece, false, kByTarget);
    ASSERT_EQ(output.stop(), "abac");
    for (const Piece& piece : output.take()) {
      whole += piece.text;
      EXPECT_EQ(piece.cut, piece.id == 2 && piece.text.empty()) << mask;
    }
    EXPECT_EQ(whole, "say ");
  }
  Output harmless(limits({"abac"}, 1));
  harmless.accept(1, "ab", false, kByTarget);
  EXPECT_FALSE(harmless.take().front().cut) << "only its beginning was said";
}

TEST(Output, TokensWithoutBytesKeepTheirPlace) {
  Output output(limits({"zz"}));
  output.accept(1, "z", false, 0);
  output.accept(2, "", false, 1);
  EXPECT_TRUE(output.take().empty());
  output.accept(3, "y", false, kByTarget);
  const std::vector<Piece> pieces = output.take();
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[0].by, 0);
  EXPECT_EQ(pieces[1].id, 2);
  EXPECT_EQ(pieces[2].by, kByTarget);
}

}  // namespace
}  // namespace outrider
