#include "json/json.h"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "json/valid_strings.h"

namespace outrider::json {
namespace {

TEST(JsonEncode, FieldsKeepTheOrderInWhichTheyWereWritten) {
  Json value;
  value["zebra"] = 1;
  value["ant"] = nullptr;
  value["mole"] = {true, "x"};
  EXPECT_EQ(encode(value), R"({"zebra":1,"ant":null,"mole":[true,"x"]})");
}

TEST(JsonEncode, BytesThatAreNotUtf8BecomeTheReplacementCharacter) {
  EXPECT_EQ(encode(Json("a\xFFz")), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(encode(Json("\xE2\x82")), "\"\xEF\xBF\xBD\"") << "cut short at the end";
  EXPECT_EQ(encode(Json("\xE2\x82\xAC")), "\"\xE2\x82\xAC\"") << "valid text stays";
}

TEST(JsonEncode, ControlCharactersAreEscapedSoThatOneValueIsOneLine) {
  EXPECT_EQ(encode(Json(std::string("a\n\0\t\"", 5))), R"("a\n\u0000\t\"")");
}

TEST(JsonEncode, NumbersThatJsonDoesNotHaveBecomeNull) {
  EXPECT_EQ(encode(Json(std::numeric_limits<double>::infinity())), "null");
  EXPECT_EQ(encode(Json(std::numeric_limits<double>::quiet_NaN())), "null");
}

TEST(JsonParse, ReadsAnyValue) {
  EXPECT_EQ(*parse(" {\"a\": [1, 2.5, \"x\"]} ").value, Json({{"a", {1, 2.5, "x"}}}));
  EXPECT_EQ(*parse("null").value, Json());
  EXPECT_EQ(parse("null").error, "");
}

TEST(JsonParse, ErrorsNameLineColumnAndReason) {
  const std::string error = parse("{\"a\":\n  tru}").error;
  EXPECT_EQ(error.rfind("line 2, column ", 0), 0U) << error;
  EXPECT_NE(error.find("not valid JSON: syntax error while parsing value"), std::string::npos)
      << error;
  EXPECT_EQ(error.find("json.exception"), std::string::npos) << error;
}

TEST(JsonParse, RefusesWhatIsNotExactlyOneValue) {
  for (const char* text : {"", "   ", "{", "{} {}", "[1,]", "{'a':1}", "{\"a\":1} x", "nul", "01",
                           "\"\xFF\"", "\"unfinished", "1e999999", "]"}) {
    const Parsed parsed = parse(text);
    EXPECT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error.rfind("line 1, column ", 0), 0U) << text << " -> " << parsed.error;
  }
}

TEST(JsonParse, NothingMayStandBehindANulByte) {
  EXPECT_EQ(parse(std::string("{\"a\":1}\0{\"b\":2}", 15)).error,
            "line 1, column 8: not valid JSON: a NUL byte");
  EXPECT_FALSE(parse(std::string("{\"a\":\"\0\"}", 9)).ok());
  const auto none = [](const Json&, std::size_t) { return std::string(); };
  EXPECT_EQ(parse_lines(std::string("{}\n{}\0{}\n", 9), none).rfind("line 2, column 3: ", 0), 0U);
}

TEST(JsonParse, AnErrorIsShortHoweverLongTheTextIs) {
  const std::string letters(std::size_t{1} << 20, 'a');
  for (const std::string& text :
       {"[\"" + letters + "\xff\"]", "[\"" + letters, "[" + std::string(1 << 20, '7') + "e999999]",
        "[" + std::string(1 << 20, '7') + "x]", "{\"" + letters + "\":1,\"" + letters + "\":1}"}) {
    const std::string error = parse(text).error;
    EXPECT_NE(error, "");
    EXPECT_LT(error.size(), 300U) << error.substr(0, 300);
    EXPECT_EQ(error.find("json.exception"), std::string::npos) << error.substr(0, 300);
  }
}

// The library's parser with a callback goes through all of an array at each object's end: this many
// would take it half an hour.
TEST(JsonParse, AnArrayMayHoldAnyNumberOfObjects) {
  constexpr std::size_t kObjects = 1'000'000;
  std::string text = "[{}";
  for (std::size_t i = 1; i < kObjects; ++i) text += ",{}";
  const Parsed parsed = parse(text + "]");
  ASSERT_TRUE(parsed.ok()) << parsed.error;
  EXPECT_EQ(parsed.value->size(), kObjects);
}

TEST(JsonParse, RefusesAFieldThatIsThereTwiceInOneObject) {
  const std::string error = parse(R"({"a":1,"b":{"c":2,"c":3}})").error;
  EXPECT_EQ(error, "the field 'c' is there twice in one object");
  const auto none = [](const Json&, std::size_t) { return std::string(); };
  EXPECT_EQ(parse_lines("{}\n{\"a\":1,\"a\":1}", none),
            "line 2: the field 'a' is there twice in one object");
  EXPECT_TRUE(parse(R"({"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]})").ok()) << "in different objects";
}

TEST(JsonParse, WhatAModelWroteIsReadWhereItIsClearWhatWasMeant) {
  EXPECT_EQ(*parse_written(R"({"a":1,"b":{"c":2,"d":4,"c":3}})").value,
            *parse(R"({"a":1,"b":{"c":3,"d":4}})").value);
  EXPECT_EQ(*parse_written("[\"a\nb\\'\"]").value, Json::array({"a\nb'"}));
  EXPECT_EQ(*parse_written("1").value, Json(1));
  EXPECT_FALSE(parse_written("{\"a\":}").ok());
  EXPECT_FALSE(parse_written("{\"a").ok());
}

TEST(JsonValidStrings, WhatJsonDoesNotHaveInAStringIsChangedAndNothingElse) {
  EXPECT_EQ(valid_strings("{ \"a\" :\n\t[\"\xC3\xA9\\n\\\\\\\"\x7F\"] }"),
            "{ \"a\" :\n\t[\"\xC3\xA9\\n\\\\\\\"\x7F\"] }");
  EXPECT_EQ(valid_strings("\"a\n\tb\x01\x1F\""), R"("a\n\tb\u0001\u001f")");
  EXPECT_EQ(valid_strings(R"("\ \'\x41\u12g")"), R"(" 'x41u12g")");
  EXPECT_EQ(valid_strings(R"("\uD83D\uDE00 \ud7ff \ue000")"), R"("\uD83D\uDE00 \ud7ff \ue000")");
  EXPECT_EQ(valid_strings(R"("\ud83d" "\ude00" "\ud83d\ud83d\ude00" "\ud83d\n")"),
            R"("\ufffd" "\ufffd" "\ufffd\ud83d\ude00" "\ufffd\n")");
}

TEST(JsonValidStrings, ALongerTextGivesMoreOfTheSame) {
  const std::string text = "[\"\\ud83d\\ude00\\ud83d\\\\\\ud83d\\udx\\u00\ne9\\\n\\\"\\ude00\"] ";
  std::string before;
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const std::string now = valid_strings(text.substr(0, n));
    EXPECT_TRUE(now.starts_with(before)) << now << " after " << before;
    EXPECT_EQ(valid_strings(now), now);
    before = now;
  }
  EXPECT_TRUE(parse(before).ok()) << before;
}

TEST(JsonValidStrings, HalfOfAPairAloneIsReplacedAndNothingElseChanges) {
  EXPECT_EQ(whole_surrogates(R"("\ud83d" "x\uDE00" "\ud83d\ud83d\ude00" "\ud83d\n\\ud83d")"),
            R"("\ufffd" "x\ufffd" "\ufffd\ud83d\ude00" "\ufffd\n\\ud83d")");
  for (const std::string text :
       {R"(\ud83d "\x" "\u12g" "\ud83")", "\"\n\t\\", "\"\\ud83d", "\"\\ud83d\\u", "\"\\", ""}) {
    EXPECT_EQ(whole_surrogates(text), text);
  }
}

TEST(JsonParse, WhatAClientCutInTheMiddleOfACharacterIsReadAndWhatElseIsWrongIsNot) {
  const Parsed sent = parse_sent(R"({"\ud83d":["x\ude00","\\ud83d","\ud83d\ude00"]})");
  ASSERT_TRUE(sent.ok()) << sent.error;
  EXPECT_EQ(encode(*sent.value),
            "{\"\xEF\xBF\xBD\":[\"x\xEF\xBF\xBD\",\"\\\\ud83d\",\"\xF0\x9F\x98\x80\"]}");
  for (const char* text :
       {R"({"a":"\ud83d","a":1})", R"({"\ud83d":1,"\ude00":1})", R"(["\ud83d","\x"])",
        R"(["\ud83d",])", "[\"\\ud83d\n\"]", R"("\ud83)"}) {
    EXPECT_FALSE(parse_sent(text).ok()) << text;
  }
  EXPECT_EQ(parse_sent("[\"\\ud83d\",\n tru]").error.rfind("line 2, column ", 0), 0U);
  EXPECT_EQ(parse_sent("{\"a\":tru}").error, parse("{\"a\":tru}").error);
}

TEST(JsonParse, RefusesObjectsWithTooManyFields) {
  std::string fields;
  for (std::size_t i = 0; i < kMaxFields; ++i) {
    fields += (i == 0 ? "" : ",") + std::string("\"f") + std::to_string(i) + "\":0";
  }
  EXPECT_TRUE(parse("{" + fields + "}").ok());
  EXPECT_NE(parse("{" + fields + ",\"more\":0}").error.find("more than 1024 fields"),
            std::string::npos);
}

TEST(JsonParse, NestingIsLimitedAndBracketsInStringsDoNotCount) {
  const std::string open(kMaxDepth, '[');
  const std::string close(kMaxDepth, ']');
  EXPECT_TRUE(parse(open + close).ok());
  EXPECT_EQ(parse(open + "[]" + close).error, "line 1, column 65: nested deeper than 64 levels");
  EXPECT_TRUE(parse(std::string(1000, '[').insert(0, 1, '"') + "\\\"[\"").ok());
  // A million levels must be an answer, not a crash.
  EXPECT_FALSE(parse(std::string(1000000, '[')).ok());
  EXPECT_FALSE(parse(std::string(1000000, '{')).ok());
}

TEST(JsonLines, GivesEachLineWithItsNumberAndSkipsBlankOnes) {
  std::vector<std::string> seen;
  const std::string error = parse_lines(
      "\xEF\xBB\xBF{\"a\":1}\r\n\n \t\n[2]\n3", [&](const Json& value, std::size_t line) {
        seen.push_back(std::to_string(line) + ":" + encode(value));
        return std::string();
      });
  EXPECT_EQ(error, "");
  EXPECT_EQ(seen, (std::vector<std::string>{"1:{\"a\":1}", "4:[2]", "5:3"}));
}

TEST(JsonLines, ErrorsNameTheLine) {
  const auto fine = [](const Json&, std::size_t) { return std::string(); };
  EXPECT_EQ(parse_lines("1\n2\n{\"a\" 1}\n", fine).rfind("line 3, column 6: not valid JSON", 0), 0U)
      << parse_lines("1\n2\n{\"a\" 1}\n", fine);
  int calls = 0;
  const std::string error = parse_lines("1\n2\n3\n", [&](const Json& value, std::size_t) {
    ++calls;
    return std::string(value == Json(2) ? "two is not wanted" : "");
  });
  EXPECT_EQ(error, "line 2: two is not wanted");
  EXPECT_EQ(calls, 2) << "the first error ends it";
}

TEST(JsonKind, NamesWhatAValueIs) {
  EXPECT_EQ(kind(Json()), "null");
  EXPECT_EQ(kind(Json(1.5)), "a number");
  EXPECT_EQ(kind(Json("x")), "a string");
  EXPECT_EQ(kind(Json::array()), "an array");
  EXPECT_EQ(kind(Json::object()), "an object");
  EXPECT_EQ(kind(Json(true)), "true or false");
}

}  // namespace
}  // namespace outrider::json
