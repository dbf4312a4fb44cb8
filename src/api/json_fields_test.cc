#include "api/json_fields.h"

#include <gtest/gtest.h>

namespace outrider::api {
namespace {

using json::Json;

Json parsed(const std::string& text) { return *json::parse(text).value; }

TEST(JsonFields, WhatIsNotThereKeepsItsDefault) {
  const Json object = parsed(R"({"b":2})");
  JsonFields fields(object);
  std::int32_t a = 7;
  std::int32_t b = 7;
  fields.integer("a", a, 0, 10);
  fields.integer("b", b, 0, 10);
  EXPECT_TRUE(fields.finish().ok());
  EXPECT_EQ(a, 7);
  EXPECT_EQ(b, 2);
}

TEST(JsonFields, WholeNumbersAreWholeAndInRange) {
  const std::pair<const char*, bool> cases[] = {{"3", true},
                                                {"3.0", true},
                                                {"-1", true},
                                                {"5", true},
                                                {"3.5", false},
                                                {"-2", false},
                                                {"6", false},
                                                {"\"3\"", false},
                                                {"null", false},
                                                {"true", false},
                                                {"[3]", false},
                                                {"{}", false},
                                                {"1e308", false},
                                                {"-1e308", false},
                                                {"9223372036854775807", false},
                                                {"-9223372036854775808", false},
                                                {"18446744073709551615", false},
                                                {"4294967298", false},
                                                {"36893488147419103232", false}};
  for (const auto& [text, right] : cases) {
    const Json object = parsed("{\"n\":" + std::string(text) + "}");
    JsonFields fields(object, "outer.");
    std::int32_t n = 2;
    fields.integer("n", n, -1, 5);
    const Status error = fields.finish();
    EXPECT_EQ(error.ok(), right) << text;
    if (error.ok()) continue;
    EXPECT_EQ(n, 2) << text;
    EXPECT_EQ(error.field(), "outer.n");
    EXPECT_NE(error.message().find("outer.n is "), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("a whole number from -1 to 5"), std::string::npos);
  }
}

TEST(JsonFields, TheLimitsOfSixtyFourBitsAreExact) {
  const Json object = parsed(R"({"a":9223372036854775807,"b":9223372036854775808})");
  JsonFields fields(object);
  std::int64_t a = 0;
  fields.integer("a", a, 0, std::numeric_limits<std::int64_t>::max());
  EXPECT_TRUE(fields.ok());
  EXPECT_EQ(a, std::numeric_limits<std::int64_t>::max());
  fields.integer("b", a, 0, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(fields.finish().field(), "b");
}

TEST(JsonFields, NumbersFitAFloat) {
  const std::pair<const char*, bool> cases[] = {
      {"0.5", true},     {"1", true},      {"-3e38", true}, {"1e39", false},
      {"-1e308", false}, {"\"1\"", false}, {"null", false}, {"false", false}};
  for (const auto& [text, right] : cases) {
    const Json object = parsed("{\"x\":" + std::string(text) + "}");
    JsonFields fields(object);
    float x = 0.0f;
    fields.number("x", x);
    EXPECT_EQ(fields.ok(), right) << text;
  }
}

TEST(JsonFields, ListsOfTextsNameTheEntryThatIsNone) {
  const Json object = parsed(R"({"one":"a","two":["a","b"],"bad":["a",1]})");
  JsonFields fields(object);
  std::vector<std::string> texts = {"default"};
  fields.texts("one", texts);
  EXPECT_EQ(texts, (std::vector<std::string>{"a"}));
  fields.texts("two", texts);
  EXPECT_EQ(texts, (std::vector<std::string>{"a", "b"}));
  fields.texts("bad", texts);
  EXPECT_EQ(fields.finish().field(), "bad[1]");
}

TEST(JsonFields, UnknownFieldsAreRefusedWithTheNearestOne) {
  const Json object = parsed(R"({"max_tokns":1})");
  JsonFields fields(object);
  std::int32_t n = 0;
  fields.integer("max_tokens", n, 0, 5);
  const Status error = fields.finish();
  ASSERT_FALSE(error.ok());
  EXPECT_EQ(error.field(), "max_tokns");
  EXPECT_NE(error.message().find("did you mean max_tokens?"), std::string::npos) << error.message();
}

TEST(JsonFields, AnUnknownFieldThatIsNullAsksForNothingWhereTheApiSaysSo) {
  const Json object = parsed(R"({"a":null,"b":1,"c":null})");
  constexpr Dialect kAbsent{.names = {}, .ignored = {}, .null_is_absent = true};
  constexpr Dialect kUnknown{.names = {}, .ignored = {}, .unknown_may_be_null = true};
  const auto wrong_field = [&object](const Dialect* dialect) {
    JsonFields fields(object, "", dialect);
    std::int32_t n = 0;
    fields.integer("a", n, 0, 5);
    fields.integer("b", n, 0, 5);
    return fields.finish().field();
  };
  EXPECT_EQ(wrong_field(&kAbsent), "");
  EXPECT_EQ(wrong_field(&kUnknown), "a") << "which is known";
  EXPECT_EQ(wrong_field(nullptr), "a");
  JsonFields fields(object, "", &kAbsent);
  EXPECT_EQ(fields.finish().field(), "b");
  JsonFields strict(object);
  EXPECT_EQ(strict.unknown(), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(JsonFields, LongValuesAndNamesAreCutAtACharacter) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "\xC3\xA9";  // é
  const Json object = {{text, 1}};
  JsonFields fields(object);
  const Status error = fields.finish();
  ASSERT_FALSE(error.ok());
  EXPECT_LT(error.message().size(), 200U);
  EXPECT_EQ(json::encode(Json(error.message())).find("\xEF\xBF\xBD"), std::string::npos);
  EXPECT_LT(shown(Json(text)).size(), 64U);
  EXPECT_EQ(shown(Json("a\nb")), "'a\\nb'") << "one line";
}

TEST(JsonFields, ChoicesSayWhatTheyAre) {
  const Json object = {{"mode", "of"}};
  JsonFields fields(object);
  std::string mode = "auto";
  constexpr std::string_view kModes[] = {"auto", "on", "off"};
  fields.choice("mode", mode, kModes);
  EXPECT_EQ(fields.finish().message(), "mode is 'of', but must be auto, on or off");
  EXPECT_EQ(mode, "auto");
}

TEST(JsonFields, WhatIsNoObjectIsAnError) {
  for (const char* text : {"null", "3", "\"x\"", "[]"}) {
    const Json value = parsed(text);
    JsonFields fields(value, "speculative.");
    std::int32_t n = 0;
    fields.integer("width", n, 0, 5);
    fields.require("width");
    EXPECT_EQ(fields.finish().field(), "speculative") << text;
  }
}

}  // namespace
}  // namespace outrider::api
