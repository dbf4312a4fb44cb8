#include "draft/suffix/suffix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "testing/chi_square.h"

namespace outrider {
namespace {

// The same answers by looking everywhere.
class NaiveIndex {
 public:
  explicit NaiveIndex(std::span<const Token> text) : text_(text.begin(), text.end()) {}

  // Places where `part` ends, as the index of the token behind it; size() for the text's own end.
  std::vector<std::size_t> ends(std::span<const Token> part) const {
    std::vector<std::size_t> found;
    for (std::size_t end = part.size(); end <= text_.size(); ++end) {
      if (std::equal(part.begin(), part.end(),
                     text_.begin() + static_cast<long>(end - part.size())))
        found.push_back(end);
    }
    return found;
  }

  // What followed `part`: token, times and the last place, the one used last first.
  std::vector<std::pair<Token, std::uint32_t>> continuations(std::span<const Token> part) const {
    std::map<Token, std::pair<std::size_t, std::uint32_t>> found;
    for (const std::size_t end : ends(part)) {
      if (end == text_.size()) continue;
      found[text_[end]].first = end;
      ++found[text_[end]].second;
    }
    std::vector<std::pair<std::size_t, Token>> order;
    for (const auto& [token, what] : found) order.emplace_back(what.first, token);
    std::sort(order.rbegin(), order.rend());
    std::vector<std::pair<Token, std::uint32_t>> result;
    for (const auto& [end, token] : order) result.emplace_back(token, found[token].second);
    return result;
  }

  // The longest suffix of the text that also ends before its end.
  std::size_t longest_match() const {
    std::size_t length = text_.empty() ? 0 : text_.size() - 1;
    while (length > 0 && ends(std::span(text_).last(length)).size() < 2) --length;
    return length;
  }

 private:
  std::vector<Token> text_;
};

// Everything that a drafter asks, against the naive answers. Returns what differs.
std::string compare(const SuffixIndex& index) {
  const NaiveIndex naive(index.text());
  SuffixIndex::Context at = index.longest_match();
  if (at.length != naive.longest_match()) {
    return "longest match " + std::to_string(at.length) + ", not " +
           std::to_string(naive.longest_match());
  }
  for (; at.length > 0; at = index.shorter(at)) {
    const std::span<const Token> part = index.text().last(at.length);
    const std::string name = " behind " + std::to_string(at.length) + " tokens";
    const std::vector<std::size_t> ends = naive.ends(part);
    if (index.count(at.state) != ends.size()) return "wrong count" + name;
    // A longer suffix must occur at fewer places, or the chain has passed over a level.
    if (at.length < index.size() &&
        naive.ends(index.text().last(at.length + 1)).size() >= ends.size()) {
      return "not the longest part" + name;
    }
    std::vector<SuffixIndex::Continuation> got;
    index.continuations(at.state, 1000, got);
    const std::vector<std::pair<Token, std::uint32_t>> wanted = naive.continuations(part);
    if (got.size() != wanted.size() || index.n_continuations(at.state) != wanted.size()) {
      return "wrong number of continuations" + name;
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i].token != wanted[i].first || got[i].count != wanted[i].second) {
        return "wrong continuation " + std::to_string(i) + name;
      }
      const SuffixIndex::Context next = index.advance(at, got[i].token);
      if (next.length != at.length + 1) return "wrong step" + name;
    }
  }
  return "";
}

// All texts of up to `longest` tokens over an alphabet, each as an extension of the one before.
void check_all(const SuffixIndex& index, int alphabet, std::size_t longest, std::int64_t& checked) {
  if (index.size() == longest) return;
  for (Token token = 0; token < alphabet; ++token) {
    SuffixIndex longer = index;
    longer.append(token);
    ASSERT_EQ(longer.check_integrity(), "");
    ASSERT_EQ(compare(longer), "")
        << ::testing::PrintToString(std::vector<Token>(longer.text().begin(), longer.text().end()));
    ++checked;
    check_all(longer, alphabet, longest, checked);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(SuffixIndex, EveryShortTextOverTwoAndThreeTokensEqualsASearch) {
  std::int64_t checked = 0;
  check_all(SuffixIndex(), 2, 10, checked);
  EXPECT_EQ(checked, 2046);
  checked = 0;
  check_all(SuffixIndex(), 3, 10, checked);
  EXPECT_EQ(checked, 88572);
}

TEST(SuffixIndex, RandomTextsEqualASearchAfterEachToken) {
  const std::uint64_t seed = testing::test_seed(20261121);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 30; ++round) {
    // Few tokens make deep contexts, many make states with many edges, copied parts long matches.
    const std::uint64_t alphabet = std::uint64_t{2} << (random() % 6);
    SuffixIndex index;
    while (index.size() < 160) {
      if (index.size() > 10 && random() % 8 == 0) {
        const std::size_t from = random() % index.size();
        const std::size_t n = std::min<std::size_t>(1 + random() % 20, index.size() - from);
        for (std::size_t i = 0; i < n; ++i) index.append(index.text()[from + i]);
      } else {
        index.append(static_cast<Token>(random() % alphabet));
      }
      ASSERT_EQ(index.check_integrity(), "") << "seed " << seed << ", round " << round;
      ASSERT_EQ(compare(index), "") << "seed " << seed << ", round " << round;
    }
  }
}

TEST(SuffixIndex, ATextOfOneTokenStaysLinear) {
  SuffixIndex index;
  for (int i = 0; i < 100000; ++i) index.append(7);
  EXPECT_EQ(index.check_integrity(), "");
  EXPECT_EQ(index.longest_match().length, 99999u);
  std::vector<SuffixIndex::Continuation> next;
  index.continuations(index.longest_match().state, 8, next);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].token, 7);
  EXPECT_LT(index.memory_bytes(), std::size_t{100000} * 120);
}

TEST(SuffixIndex, AdvancingFallsBackToTheLongestPartThatTheTokenFollowed) {
  SuffixIndex index;
  for (const Token token : {1, 2, 3, 9, 2, 4, 1, 2}) index.append(token);
  const SuffixIndex::Context match = index.longest_match();
  EXPECT_EQ(match.length, 2u);                    // 1 2
  EXPECT_EQ(index.advance(match, 3).length, 3u);  // 1 2 3
  EXPECT_EQ(index.advance(match, 4).length, 2u);  // 2 4
  EXPECT_EQ(index.advance(match, 9).length, 1u);  // 9
  EXPECT_EQ(index.advance(match, 8).length, 0u);  // never seen
}

TEST(SuffixIndex, ClearingGivesTheMemoryBack) {
  SuffixIndex index;
  const std::size_t empty = index.memory_bytes();
  for (int i = 0; i < 10000; ++i) index.append(i % 100);
  EXPECT_GT(index.memory_bytes(), std::size_t{10000} * 40);
  index.clear();
  EXPECT_LE(index.memory_bytes(), empty + 1000);
  EXPECT_EQ(index.longest_match().length, 0u);
  EXPECT_EQ(index.check_integrity(), "");
}

}  // namespace
}  // namespace outrider
