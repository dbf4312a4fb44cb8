#include "llama/schema/pattern.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "json/json.h"
#include "llama/grammar/gbnf.h"
#include "llama/schema/as_regex_test.h"
#include "testing/chi_square.h"

namespace outrider::llama {
namespace {

// All texts of up to `length` of these characters, JSON's own among them.
std::vector<std::string> all_texts(std::size_t length) {
  constexpr std::string_view kCharacters = "ab1 \"\\\n";
  std::vector<std::string> all = {""};
  std::size_t begin = 0;
  for (std::size_t n = 0; n < length; ++n) {
    const std::size_t end = all.size();
    for (std::size_t i = begin; i < end; ++i) {
      for (const char c : kCharacters) all.push_back(all[i] + c);
    }
    begin = end;
  }
  return all;
}

void expect_the_same_texts(const std::string& pattern, const std::vector<std::string>& texts) {
  const Result<std::string> expression = pattern_expression(pattern);
  ASSERT_TRUE(expression.ok()) << pattern << ": " << expression.status().message();
  // Loops over the same characters behind one another are refused for what they cost; they match.
  GbnfLimits limits;
  limits.token_ways = std::numeric_limits<std::size_t>::max();
  const Result<GbnfSummary> checked = check_gbnf("root ::= " + *expression, limits);
  ASSERT_TRUE(checked.ok()) << pattern << "\n" << *expression << "\n" << checked.status().message();
  const std::regex theirs(pattern);
  const std::regex ours(as_regex(*expression));
  for (const std::string& text : texts) {
    const std::string json = json::encode(text);
    ASSERT_EQ(std::regex_match(json, ours), std::regex_search(text, theirs))
        << pattern << " on " << json << "\n"
        << *expression;
  }
}

TEST(PatternTest, MatchesTheTextsThatTheStandardLibraryFindsItIn) {
  const std::vector<std::string> texts = all_texts(4);
  for (const char* pattern : {"^a$",
                              "a",
                              "^a",
                              "a$",
                              "",
                              "^$",
                              "^a|b$",
                              "^(a|b)$",
                              "^(?:a|b)+$",
                              "^a*b?1+$",
                              "^a{2}$",
                              "^a{1,2}b$",
                              "^a{2,}$",
                              "^a{0,1}?b*?$",
                              "^[ab]+$",
                              "^[^ab]+$",
                              "^[a-b1]*$",
                              "^.$",
                              "^.*$",
                              "^\\d+$",
                              "^\\D+$",
                              "^\\w+$",
                              "^\\W+$",
                              "^\\s+$",
                              "^\\S+$",
                              "^[\\d\\s]+$",
                              "^[^\\w]$",
                              "\"",
                              "\\\\",
                              "^[\"\\\\]+$",
                              "^\\n$",
                              "^[\\n ]+$",
                              "^\\x61\\u0062$",
                              "^(a|)b$",
                              "^(ab)*$",
                              "^((a|b)1)*$",
                              "^a{0}b$",
                              "^(a*)*$",
                              "^(a+)+b$",
                              "a|1",
                              "^a|^b|1$"}) {
    expect_the_same_texts(pattern, texts);
    if (HasFatalFailure()) return;
  }
}

// A random pattern of the syntax that is kept to.
std::string random_pattern(std::mt19937& random, int depth) {
  const auto pick = [&random](int n) { return static_cast<int>(random() % n); };
  static const char* const kAtoms[] = {"a",   "b",   "1",  ".",    "[ab]",   "[^a]",     "\\d",
                                       "\\w", "\\S", "\"", "\\\\", "[^\"1]", "[\\s\\\\]"};
  static const char* const kRepeats[] = {"", "", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"};
  // Of a group: a repeat without end of another one takes std::regex, the reference, minutes.
  static const char* const kBounded[] = {"", "", "?", "{2}", "{0,2}"};
  std::string text;
  const int n_alternatives = 1 + pick(3) / 2;
  for (int i = 0; i < n_alternatives; ++i) {
    if (i > 0) text += "|";
    const int n_terms = 1 + pick(3);
    for (int j = 0; j < n_terms; ++j) {
      if (depth > 0 && pick(4) == 0) {
        text += "(" + random_pattern(random, depth - 1) + ")" + kBounded[pick(std::size(kBounded))];
      } else {
        text += kAtoms[pick(std::size(kAtoms))];
        text += kRepeats[pick(std::size(kRepeats))];
      }
    }
  }
  return text;
}

TEST(PatternTest, RandomPatternsMatchTheSameTexts) {
  const std::uint64_t seed = testing::test_seed(33);
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  const std::vector<std::string> texts = all_texts(3);
  for (int i = 0; i < 100; ++i) {
    const std::string inside = random_pattern(random, 2);
    const std::string pattern = i % 2 == 0 ? "^(" + inside + ")$" : inside;
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pattern " + std::to_string(i));
    expect_the_same_texts(pattern, texts);
    if (HasFatalFailure()) return;
  }
}

TEST(PatternTest, WhatIsNoPatternOrNotRegularIsRefusedWithTheReason) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"(?=a)b", "look-around"},
      {"(?<!a)b", "look-around"},
      {"(?i)b", "flags"},
      {"(a)\\1", "'\\1'"},
      {"\\bword\\b", "'\\b'"},
      {"\\p{L}", "'\\p'"},
      {"a^b", "an anchor inside"},
      {"(^a)", "an anchor inside"},
      {"a$b", "an anchor inside"},
      {"(a", "not closed"},
      {"a)", "closes nothing"},
      {"[a", "not closed"},
      {"[b-a]", "above to below"},
      {"[\\d-a]x[z-\\d]", "above to below"},
      {"*", "nothing to repeat"},
      {"a**", "nothing to repeat"},
      {"a{2}{3}", "nothing to repeat"},
      {"a{3,2}", "above the most"},
      {"a{5000}", "2000 repetitions"},
      {"\\", "at the end"},
      {"\\u12", "hexadecimal"},
      {"^[^\\s\\S]$", "without a character"},
      {std::string(150, '(') + "a" + std::string(150, ')'), "100 deep"}};
  for (const auto& [pattern, why] : bad) {
    const Result<std::string> expression = pattern_expression(pattern);
    EXPECT_FALSE(expression.ok()) << pattern << " gave " << *expression;
    EXPECT_NE(expression.status().message().find(why), std::string::npos)
        << pattern << ": " << expression.status().message();
  }
}

TEST(PatternTest, CharactersBeyondAsciiStandAsTheyAre) {
  for (const char* pattern :
       {"^\u00e9+$", "^[\u00e0-\u00ff]$", "^[^\U0001F600]$", "^(?<name>\u65e5\u672c)$"}) {
    const Result<std::string> expression = pattern_expression(pattern);
    ASSERT_TRUE(expression.ok()) << pattern << ": " << expression.status().message();
    EXPECT_TRUE(check_gbnf("root ::= " + *expression).ok()) << *expression;
  }
  EXPECT_NE(pattern_expression("^\u00e9$")->find("\\xE9"), std::string::npos);
  EXPECT_NE(pattern_expression("^\U0001F600$")->find("\\U0001F600"), std::string::npos);
}

}  // namespace
}  // namespace outrider::llama
