#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "llama/grammar/gbnf.h"
#include "llama/grammar/gbnf_rules.h"

namespace outrider::llama {
namespace {

// The text that the error shows; "" where it shows none.
std::string shown_text(const std::string& message) {
  const std::string before = "ways into the text \"";
  const std::size_t begin = message.find(before);
  if (begin == std::string::npos) return "";
  return message.substr(begin + before.size(), message.find("\" before") - begin - before.size());
}

std::string ambiguous_text(const std::string& grammar, const GbnfLimits& limits = {}) {
  return shown_text(check_gbnf(grammar, limits).status().message());
}

std::string row_of(const std::string& part, int n) {
  std::string row;
  for (int i = 0; i < n; ++i) row += part + " ";
  return row;
}

TEST(GbnfAmbiguity, RowsThatTakeTheSameCharactersAreRefusedWithAText) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"root ::= \"x\" o{30}\no ::= [a-z]?", "xxxxxx0"},  // docs/bugs.md
      {"root ::= o{30}\no ::= [a-z]?", "aaaaa0"},
      {"root ::= o{30}\no ::= [\\x61-\\u007A_]?", "aaaaa0"},
      {"root ::= o{30}\no ::= [^\\n]?", "aaaaa\\n"},
      {"root ::= o{30}\no ::= \"\xe4\xb8\xad\"?", "\\u4E2D\\u4E2D\\u4E2D\\u4E2D\\u4E2Da"},
      {"root ::= o{30}\no ::= [\\U0001F600\"\\\\]?", "\\\"\\\"\\\"\\\"\\\"a"},
      {"root ::= s o{15}\ns ::= \"x\" o{15}\no ::= [a-z]?", "xxxxxx0"},
      {"root ::= \"{\" pair (\",\" pair)* \"}\"\npair ::= \"k:\" " + row_of("[0-9]*", 8),
       "00000000000a"},
      // Behind texts of any length, and of parts that differ but share characters.
      {"root ::= [^:]* \": \" \"0123456789012345678901234567890\" r\nr ::= " +
           row_of("[a-f]? [c-z]?", 15),
       "ccccc0"}};
  for (const auto& [grammar, text] : bad) {
    const Status status = check_gbnf(grammar).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << grammar;
    EXPECT_NE(status.message().find("fewer optional parts or loops"), std::string::npos) << grammar;
    EXPECT_NE(ambiguous_text(grammar).find(text), std::string::npos) << grammar << "\n"
                                                                     << status.message();
  }
}

TEST(GbnfAmbiguity, WhatCostsLittleIsTaken) {
  std::string words = "root ::= \"w0\"";
  for (int i = 1; i < 1000; ++i) words += " | \"w" + std::to_string(i) + "\"";
  const std::vector<std::string> good = {
      std::string("root ::= \"x\" [a-z]{0,2000}"),  // one way only
      std::string("root ::= o{16}\no ::= [a-z]?"),
      "root ::= \"x\" " + row_of("ws", 6) + "\"y\"\nws ::= [ \\t\\n]*",
      "root ::= ws \"[\" ws (v ws (\",\" ws v ws)*)? \"]\" ws\nv ::= ws \"1\" ws | root\n"
      "ws ::= [ \\t\\n]*",
      std::string("root ::= o{30} .*\no ::= .?"),  // nothing is refused, so the first way ends it
      std::string("root ::= o{30}\no ::= <[12]>?"),
      words,
      std::string("root ::= \"a\" root \"a\" | \"a\" root \"b\" | \"!\"")};
  for (const std::string& grammar : good) {
    EXPECT_EQ(check_gbnf(grammar).status().message(), "") << grammar.substr(0, 60);
  }
}

// No token is a row of empty objects, though all of their parts are optional.
TEST(GbnfAmbiguity, ARowOfObjectsWithOptionalPartsIsTaken) {
  std::string grammar = "root ::= \"[\" object (\",\" object)* \"]\"\nobject ::= ";
  for (int i = 0; i < 50; ++i) {
    const std::string n = std::to_string(i);
    grammar +=
        (i > 0 ? " | " : "") + ("\"{\" space ( \"\\\"p" + n + "\\\":\" [0-9] )? \"}\" space");
  }
  grammar += "\nspace ::= | \" \" | \"\\n\"{1,2} [ \\t]{0,20}\n";
  EXPECT_EQ(check_gbnf(grammar).status().message(), "");
}

// What the matcher does, way by way: at part `from` of n optional ones with text[at] to come, each
// part that may be next and the end are stacks that are looked at.
std::uint64_t count_ways(int from, int n, std::size_t at, const std::string& text) {
  std::uint64_t ways = 0;
  for (int part = from; part <= n; ++part) {
    ++ways;
    if (part < n && text[at] == 'a') ways += count_ways(part + 1, n, at + 1, text);
  }
  return ways;
}

TEST(GbnfAmbiguity, TheTextHasAsManyWaysAsItSays) {
  for (int n = 2; n <= 12; ++n) {
    const std::string grammar = "root ::= o{" + std::to_string(n) + "}\no ::= \"a\"?";
    const std::uint64_t most = count_ways(0, n, 0, std::string(16, 'a') + "0");
    for (std::uint64_t limit = 1; limit < most + 5; limit += 1 + limit / 9) {
      const std::string text = ambiguous_text(grammar, {.token_ways = limit});
      if (text.empty()) {
        EXPECT_GE(limit + 1, most) << n;
        continue;
      }
      EXPECT_EQ(text, std::string(text.size() - 1, 'a') + "0") << n;
      EXPECT_GT(count_ways(0, n, 0, text), limit) << n << " parts: " << text;
      if (text.size() == 1) continue;
      EXPECT_LE(count_ways(0, n, 0, text.substr(1)), limit) << "a shorter one would do";
    }
  }
}

// The work is bounded whatever the grammar: what lies behind the most of it is taken unseen.
TEST(GbnfAmbiguity, LargeGrammarsAreLookedAtInPartOnly) {
  for (const int n : {10, 4000}) {
    std::string grammar = "root ::= r0\n";
    for (int i = 0; i < n; ++i) {
      grammar += "r" + std::to_string(i) + " ::= [a-z] [a-y]? [a-x]? [a-w]? [a-v]? \"0\" r" +
                 std::to_string(i + 1) + "\n";
    }
    grammar += "r" + std::to_string(n) + " ::= \"!\" o{30}\no ::= [a-z]?\n";
    EXPECT_EQ(check_gbnf(grammar, kMadeGbnfLimits).ok(), n == 4000) << n;
  }
}

TEST(GbnfCharacters, ClassesTakeWhatTheyName) {
  const GbnfCharacters some{.ranges = {{'a', 'c'}, {0x4E2D, 0x4E2D}, {'z', 'x'}}};
  for (const std::uint32_t c : {0x61U, 0x62U, 0x63U, 0x4E2DU}) EXPECT_TRUE(some.takes(c)) << c;
  for (const std::uint32_t c : {0x60U, 0x64U, 0x79U, 0x4E2EU}) EXPECT_FALSE(some.takes(c)) << c;
  const GbnfCharacters others{.ranges = some.ranges, .all_others = true};
  EXPECT_FALSE(others.takes('b'));
  EXPECT_TRUE(others.takes('y'));
  EXPECT_TRUE(GbnfCharacters{.all_others = true}.takes('a'));
  EXPECT_FALSE(GbnfCharacters{}.takes('a'));
}

}  // namespace
}  // namespace outrider::llama
