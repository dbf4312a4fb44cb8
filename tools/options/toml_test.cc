#include "tools/options/toml.h"

#include <string>

#include <gtest/gtest.h>

namespace outrider::tools {
namespace {

// "table/key=value|value table/key=..." or the error.
std::string show(std::string_view text) {
  const Result<TomlFile> file = parse_toml(text);
  if (!file.ok()) return file.status().message();
  std::string shown;
  for (const TomlEntry& entry : file->entries) {
    shown += shown.empty() ? "" : " ";
    shown += entry.table + "/" + entry.key + "=";
    for (std::size_t i = 0; i < entry.values.size(); ++i) {
      shown += (i > 0 ? "|" : "") + entry.values[i];
    }
  }
  return shown;
}

TEST(Toml, ReadsNumbersBooleansStringsTablesAndComments) {
  EXPECT_EQ(show("# options\nctx = 8_192\ntemp=0.7 # warm\n\n[run]\r\njson = true\nseed = -1\n"),
            "/ctx=8192 /temp=0.7 run/json=true run/seed=-1");
  EXPECT_EQ(show("run.ctx = 5\n\"top-k\" = +7\nx = 1e-3"), "run/ctx=5 /top-k=7 /x=0.001");
  EXPECT_EQ(show(""), "");
  EXPECT_EQ(show("\xEF\xBB\xBF"
                 "a = 1"),
            "/a=1");
}

TEST(Toml, StringsKeepHashesCommasAndEscapes) {
  EXPECT_EQ(show(R"(stop = "a # b, [c]")"), "/stop=a # b, [c]");
  EXPECT_EQ(show(R"(stop = "\n\t\"\\ \u00e9 \U0001F600")"),
            "/stop=\n\t\"\\ \xC3\xA9 \xF0\x9F\x98\x80");
  EXPECT_EQ(show(R"(stop = 'C:\n "x"')"), "/stop=C:\\n \"x\"");
  EXPECT_EQ(show("stop = \"\""), "/stop=");
}

TEST(Toml, ArraysMaySpanLines) {
  EXPECT_EQ(show("stop = [ # two\n  \"a\",\n  'b', # last\n]\nn = 1"), "/stop=a|b /n=1");
  EXPECT_EQ(show("stop = []"), "/stop=");
  EXPECT_EQ(show("x = [1, 2]"), "/x=1|2");
}

TEST(Toml, OnlyModelsHoldTables) {
  const Result<TomlFile> file =
      parse_toml("ctx = 1\n[models.b]\nmodel = \"b.gguf\"\n\n[models.'a c']\n");
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->models.size(), 2U);
  EXPECT_EQ(file->models[0].name, "b");
  EXPECT_EQ(file->models[0].line, 2U);
  EXPECT_EQ(file->models[1].name, "a c");
  EXPECT_EQ(show("[models.b]\nmodel = \"b.gguf\""), "models.b/model=b.gguf");
  EXPECT_EQ(show("[run.b]\nctx = 1").rfind("line 1: 'b' takes", 0), 0U) << show("[run.b]\nctx = 1");
  EXPECT_EQ(show("[models.b.c]\nx = 1").rfind("line 1: 'c' takes", 0), 0U);
}

TEST(Toml, LinesAreCountedThroughArraysAndComments) {
  EXPECT_EQ(parse_toml("# one\nstop = [\n1,\n2]\nlast = 5")->entries.back().line, 5U);
}

TEST(Toml, WhatFitsNoOptionIsAnErrorWithItsLine) {
  for (const char* text : {"ctx",          "ctx 5",       "= 5",
                           "ctx =",        "ctx = five",  "ctx = 5 6",
                           "ctx = \"5",    "ctx = '5\n'", "ctx = 1979-05-27",
                           "[[run]]",      "[run",        "[]",
                           "x = [1, [2]]", "x = [1 2]",   "x = [1",
                           "a.b.c = 1",    "x = \"\\q\"", "x = \"\\ud800\"",
                           "x = 1__0",     "x = _1",      "x = 1.2.3"}) {
    const std::string error = show(text);
    EXPECT_EQ(error.rfind("line ", 0), 0U) << text << " -> " << error;
  }
  // Nothing that a file holds may break an assertion of the reader's.
  for (const char* text : {"[?]", "[?un]\nx = 1", "[ ,]", "x = [[", "[a.?]", "? = 1"}) {
    EXPECT_EQ(show(text).rfind("line ", 0), 0U) << text << " -> " << show(text);
  }
  // Nor what it tells the compiler of characters outside of ASCII.
  for (const char* text : {"caf\u00e9 = 1", "x = \u00e9", "x \u00e9 = 1", "[\u0416]",
                           "[n]\nx \ufeff\n", "x = 1 \u2c0e", "\u2028x = 1"}) {
    EXPECT_EQ(show(text).rfind("line ", 0), 0U) << text << " -> " << show(text);
  }
  EXPECT_EQ(show("x = \"caf\u00e9 \u2c0e\" # \u0416"), "/x=caf\u00e9 \u2c0e");
  EXPECT_EQ(show("a = 1\n\na = 2").rfind("line 3: ", 0), 0U);
  EXPECT_EQ(show("a = 1\n[run]\na = 2"), "/a=1 run/a=2") << "another table is another key";
  EXPECT_EQ(show("\n\nx = 1979-05-27").rfind("line 3: 'x' takes a text", 0), 0U);
}

}  // namespace
}  // namespace outrider::tools
