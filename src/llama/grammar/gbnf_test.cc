#include "llama/grammar/gbnf.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace outrider::llama {
namespace {

std::string repeated(const std::string& text, std::size_t n) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) all += text;
  return all;
}

std::string reason(const std::string& grammar) { return check_gbnf(grammar).status().message(); }

TEST(Gbnf, TheUsualLanguageIsAccepted) {
  const std::vector<std::string> good = {
      "root ::= \"yes\" | \"no\"",
      "# a comment\nroot ::= item+ # one more\nitem ::= \"- \" [^\\n]{1,80} \"\\n\"\n",
      "root ::= (\n  \"a\" |\n  \"b\"\n)* \"c\"?\r\n\r\nx ::= .{2,} "
      "[a-zA-Z_\\x41\\u00e9\\U0001F600\\]-]",
      "root ::= ws ws2\nws ::= [ \\t]*\nws2 ::= ([ \\n] ws2)?",
      "root ::= (ws*)* \"x\"\nws ::= [ \\t]*",  // empty in itself, but never growing
      "root ::= a{0} b{0,0} c{3} c{2000}\na ::= \"a\"\nb ::= \"b\"\nc ::= \"c\"",
      "root ::= \"\"",
      "root ::= <[12]> !<[13]> <think> .*",
      "root ::= expr\nexpr ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" expr \")\"",
      "root ::= [-a] [a-] [^\\]x] \"\xc3\xa9\"",
      "root ::= one\nroot ::= \"a\" | \"\"\none ::= \"b\""};  // the later root counts
  for (const std::string& grammar : good) {
    const Result<GbnfSummary> summary = check_gbnf(grammar);
    EXPECT_TRUE(summary.ok()) << grammar << "\n" << summary.status().message();
  }
  const GbnfSummary tokens = check_gbnf(good[7]).value();
  EXPECT_EQ(tokens.token_ids, (std::vector<std::uint32_t>{12, 13}));
  EXPECT_EQ(tokens.token_names, (std::vector<std::string>{"<think>"}));
}

TEST(Gbnf, WhatIsWrongIsSaidWithItsPlace) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "is empty"},
      {"  # nothing\n\n", "is empty"},
      {"rooot ::= \"a\"", "no rule 'root'"},
      {"root = \"a\"", "line 1, column 6: expected '::='"},
      {"root ::= \"a", "end of the grammar"},
      {"root ::= [a", "end of the grammar"},
      {"root ::= \"\\q\"", "unknown escape"},
      {"root ::= \"\\x4\"", "2 hex digits"},
      {"root ::= \"a\"\nx ::= ( \"b\"", "line 2, column 12: expected ')'"},
      {"root ::= \"a\" )", "expected the end of the line"},
      {"root ::= *", "nothing to repeat"},
      {"root ::= \"\"+", "nothing to repeat"},
      {"root ::= a?\n", "'a' is used but not defined"},
      {"root ::= []", "class with no characters"},
      {"root ::= [^]", "class with no characters"},
      {"root ::= \"a\"{3,1}", "at least 3 and at most 1"},
      {"root ::= \"a\"{0,3000}", "above 2000"},
      {"root ::= \"a\"{99999999999999999999}", "above 2000"},
      {"root ::= \"a\"{,3}", "expected a number"},
      {"root ::= \"a\"{1;2}", "expected '}'"},
      {"root ::= <[99999999999]>", "above"},
      {"root ::= <[x]>", "expected a number"},
      {"root ::= <think", "expected '>'"},
      {"root ::= !a", "expected '<'"},
      {"%llguidance {}\nstart: /a/", "expected the name"},
      {std::string("root ::= \"a\"\0 | [^a]", 20), "NUL"},
      {"root ::= \"\xff\"", "UTF-8"}};
  for (const auto& [grammar, message] : bad) {
    const Status status = check_gbnf(grammar).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << grammar;
    EXPECT_NE(status.message().find(message), std::string::npos) << grammar << "\n"
                                                                 << status.message();
  }
}

TEST(Gbnf, LeftRecursionIsFoundHoweverItHides) {
  for (const char* grammar :
       {"root ::= root \"a\" | \"b\"", "root ::= root | \"b\"",
        "root ::= a \"x\"\na ::= b \"y\"\nb ::= a \"z\" | \"w\"",
        "root ::= empty root \"a\" | \"b\"\nempty ::= \"\"",
        // llama.cpp's own search does not see these two, and its matcher would not come back.
        "root ::= e1 root \"a\" | \"b\"\ne1 ::= e2\ne2 ::= \"\"",
        "root ::= (\"x\"?) root \"y\" | \"b\"", "root ::= (\"x\"* root \"z\")* \"y\""}) {
    EXPECT_NE(reason(grammar).find("left recursion"), std::string::npos) << grammar << "\n"
                                                                         << reason(grammar);
  }
}

// docs/bugs.md. llama.cpp dies of the first two and never ends on most of the others.
TEST(Gbnf, WhatWouldKillLlamasParserIsRefusedAtOnce) {
  std::string chain = "root ::= r0\n";
  std::string doubling = "root ::= r0\n";
  std::string stacks = "root ::= r0\n";
  for (int i = 0; i < 100000; ++i) {
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  }
  for (int i = 0; i < 40; ++i) {
    const std::string next = "r" + std::to_string(i + 1);
    doubling += "r" + std::to_string(i) + " ::= " + next + " \"a\" | " + next + " \"b\"\n";
    stacks += "r" + std::to_string(i) + " ::= " + next + "? " + next + "?\n";
  }
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"root ::= " + repeated("(", 60000) + "\"a\"" + repeated(")", 60000), "nested more than"},
      {chain + "r100000 ::= \"a\"\n", "more than"},
      {doubling + "r40 ::= \"z\"\n", "ways"},
      {stacks + "r40 ::= \"z\"\n", "ways"},
      {"root ::= ((\"a\"{0,2000}){0,2000}){0,2000}", "come to more than 2000"},
      {"root ::= x{0,2000}\nx ::= \"a\"{0,2000}", "ways"},
      {"root ::= x{2000}\nx ::= y{2000}\ny ::= (\"a\" | \"b\"){0,1999}", "ways"},
      {"root ::= \"" + repeated("abcdefghij", 100) + "\"{1000}", "elements"},
      {"root ::= [" + repeated("a", 60000) + "]", "elements"},
      {"root ::= \"" + repeated("a", 1 << 20) + "\"", "bytes"}};
  for (const auto& [grammar, message] : bad) {
    const Status status = check_gbnf(grammar).status();
    EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
  }
  // The chain within the limit of rules is too deep for llama.cpp's search.
  std::string deep = "root ::= r0\n";
  for (int i = 0; i < 5000; ++i) {
    deep += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  }
  EXPECT_NE(reason(deep + "r5000 ::= \"a\"\n").find("one in another"), std::string::npos);
}

// Places behind a character, where the matcher keeps a stack for each way to go on.
TEST(Gbnf, WaysMultiplyNowhereBehindACharacter) {
  std::string shared = "o ::= \"a\"?\nw ::= o{300}\nroot ::= \"z\"";
  std::string outwards = "o ::= \"a\"?\nroot ::= r0\nr100 ::= \"x\" \"y\"\n";
  for (int i = 0; i < 100; ++i) {
    const std::string n = std::to_string(i);
    shared += " | \"x\" w \"" + n + "\"";
    outwards += "r" + n + " ::= r" + std::to_string(i + 1) + " o{100}\n";
  }
  for (const std::string& grammar :
       {std::string("root ::= \"x\" o{2000}\no ::= \"a\"?"),
        "root ::= \"x\" " + repeated("\"a\"? ", 2000),
        std::string("root ::= [x] o{2000}\no ::= \"a\"?"),
        std::string("root ::= y o{2000}\ny ::= \"x\"\no ::= \"a\"?"),
        std::string("root ::= \"x\" \"y\" o{2000} \"z\"\no ::= \"a\"?"), outwards, shared}) {
    const Status status = check_gbnf(grammar).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << grammar.substr(0, 60);
    EXPECT_NE(status.message().find("the text can go on in more than"), std::string::npos)
        << grammar.substr(0, 60) << "\n"
        << status.message();
  }
}

// What schemas' optional properties become: a chain of optional parts, and of such objects one of
// several.
TEST(Gbnf, ChainsOfOptionalPartsPassAtUsualSizes) {
  const auto object = [](const std::string& name, int n) {
    std::string rules;
    std::string all;
    for (int i = 0; i < n; ++i) {
      const std::string own = name + std::to_string(i);
      const std::string next = name + std::to_string(i + 1);
      const bool last = i + 1 == n;
      rules += own + "-kv ::= \"\\\"" + own + "\\\"\" space \":\" space number\n";
      if (!last) rules += own + "-rest ::= ( \",\" space " + next + "-kv )? " + next + "-rest\n";
      if (last) rules += own + "-rest ::= \"\"\n";
      all += (i > 0 ? " | " : "") + own + "-kv " + own + "-rest";
    }
    return rules + name + " ::= \"{\" space ( " + all + " )? \"}\" space\n";
  };
  const std::string basis =
      "space ::= | \" \" | \"\\n\"{1,2} [ \\t]{0,20}\n"
      "number ::= \"-\"? ([0] | [1-9] [0-9]{0,15}) (\".\" [0-9]{1,16})? space\n";
  const std::string one = basis + object("a", 200) + "root ::= a\n";
  EXPECT_EQ(check_gbnf(one, kMadeGbnfLimits).status().message(), "");
  std::string several = basis + "root ::= \"null\"";
  for (int i = 0; i < 40; ++i) several += " | a" + std::to_string(i) + "x";
  several += "\n";
  for (int i = 0; i < 40; ++i) several += object("a" + std::to_string(i) + "x", 40);
  EXPECT_EQ(check_gbnf(several, kMadeGbnfLimits).status().message(), "");
}

// The smallest cases of docs/bugs.md, as they stand there.
TEST(Gbnf, TheCasesOfTheBugsPageAreRefused) {
  // llama.cpp's search for left recursion looks at rules that root does not use, too.
  std::string doubling = "root ::= \"z\"\n";
  std::string deep = "root ::= \"z\"\n";
  for (int i = 0; i < 40; ++i) {
    const std::string next = "r" + std::to_string(i + 1);
    doubling += "r" + std::to_string(i) + " ::= " + next + " \"a\" | " + next + " \"b\"\n";
  }
  for (int i = 0; i < 5000; ++i) {
    deep += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  }
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"root ::= " + repeated("(", 20000), "nested more than"},
      {deep + "r5000 ::= \"a\"\n", "one in another"},
      {doubling + "r40 ::= \"z\"\n", "ways"},
      {"root ::= (\"x\"?) root \"y\" | \"b\"", "left recursion"},
      {"root ::= x{0,2000}\nx ::= \"a\"{0,2000}", "ways"},
      {"root ::= " + repeated("\"a\"? ", 2000), "ways"},
      {"root ::= \"a\"{1,0}", "at least 1 and at most 0"},
      {"root ::= \"a\"{0,2001}", "above 2000"},
      {"root ::= \"a\" [] \"b\"", "class with no characters"},
      {"", "is empty"},
      {std::string("root ::= \"a\"\0 \"b\"", 17), "NUL"},
      {"root ::= <[4294967396]>", "above"}};
  for (const auto& [grammar, message] : bad) {
    const Status status = check_gbnf(grammar).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << grammar.substr(0, 60);
    EXPECT_NE(status.message().find(message), std::string::npos) << grammar.substr(0, 60) << "\n"
                                                                 << status.message();
  }
}

}  // namespace
}  // namespace outrider::llama
