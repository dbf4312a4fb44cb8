#include "rpcserver/seed_object.h"

#include <gtest/gtest.h>

#include <limits>

namespace outrider::rpcserver {
namespace {

using json::Json;

Json parse(const std::string& text) { return *json::parse(text).value; }

// `text` as the whole number that it must be, in [min, max].
std::optional<std::int64_t> whole_number(const std::string& text, std::int64_t min,
                                         std::int64_t max) {
  const Json object = {{"n", parse(text)}};
  JsonFields fields(object, "", &kSeedDialect);
  std::int64_t value = 0;
  fields.integer("n", value, min, max);
  return fields.ok() ? std::optional(value) : std::nullopt;
}

TEST(SeedObjectTest, NullStandsForTheDefault) {
  const Json object = parse(R"({"a":null,"b":null,"c":null,"d":null})");
  JsonFields fields(object, "", &kSeedDialect);
  bool flag = true;
  std::string text = "kept";
  std::int64_t number = 7;
  double fraction = 0.5;
  fields.boolean("a", flag);
  fields.text("b", text);
  fields.integer("c", number, 0, 10);
  fields.number("d", fraction, {.min = 0.0, .max = 1.0});
  EXPECT_TRUE(flag);
  EXPECT_EQ(text, "kept");
  EXPECT_EQ(number, 7);
  EXPECT_EQ(fraction, 0.5);
  EXPECT_TRUE(fields.finish().ok());
  EXPECT_TRUE(fields.unknown().empty());
}

TEST(SeedObjectTest, WholeNumbersMayBeWrittenWithAPoint) {
  EXPECT_EQ(whole_number("40", 0, 100), 40);
  EXPECT_EQ(whole_number("40.0", 0, 100), 40);
  EXPECT_EQ(whole_number("-1", -1, 100), -1);
  EXPECT_EQ(whole_number("4e1", 0, 100), 40);
  EXPECT_EQ(whole_number("40.5", 0, 100), std::nullopt);
  EXPECT_EQ(whole_number("101", 0, 100), std::nullopt);
  EXPECT_EQ(whole_number("-1", 0, 100), std::nullopt);
  EXPECT_EQ(whole_number("1e300", 0, 100), std::nullopt);
  EXPECT_EQ(whole_number("true", 0, 100), std::nullopt);
  EXPECT_EQ(whole_number("\"40\"", 0, 100), std::nullopt);
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(whole_number("9223372036854775807", kMin, kMax), kMax);
  EXPECT_EQ(whole_number("18446744073709551615", kMin, kMax), std::nullopt);
  EXPECT_EQ(whole_number("-9223372036854775808", kMin, kMax), kMin);
  EXPECT_EQ(whole_number("5", -10, -1), std::nullopt);
}

TEST(SeedObjectTest, AWrongKindIsRefusedWithTheFieldAndWhatItIs) {
  const Json object = parse(R"({"a":"yes"})");
  JsonFields fields(object, "outer.", &kSeedDialect);
  bool flag = false;
  fields.boolean("a", flag);
  const Status error = fields.finish();
  ASSERT_FALSE(error.ok());
  EXPECT_FALSE(flag);
  EXPECT_EQ(error.field(), "outer.a");
  EXPECT_EQ(error.message(), "outer.a is a string, but must be true or false");
}

TEST(SeedObjectTest, AValueIsCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "\xC3\xA9";  // é; behind the quote each begins at an odd byte
  const Json object = {{"n", text}};
  JsonFields fields(object, "", &kSeedDialect);
  std::int64_t n = 0;
  fields.integer("n", n, 0, 9);
  const std::string message = fields.finish().message();
  EXPECT_NE(message.find("..."), std::string::npos) << message;
  EXPECT_EQ(json::encode(Json(message)).find("\xEF\xBF\xBD"), std::string::npos) << message;
}

TEST(SeedObjectTest, ANumberOutsideItsRangeIsRefusedWithTheRange) {
  const Json object = parse(R"({"a":12,"b":1.5})");
  JsonFields fields(object, "", &kSeedDialect);
  std::int64_t number = 3;
  double fraction = 0.25;
  fields.number("b", fraction, {.min = 0.0, .max = 1.0});
  EXPECT_EQ(fields.finish().message(), "b is 1.5, but must be from 0 to 1");
  fields.integer("a", number, 0, 9);
  EXPECT_EQ(fields.finish().field(), "b") << "the first refusal counts";
  EXPECT_EQ(number, 3);
  EXPECT_EQ(fraction, 0.25);
}

TEST(SeedObjectTest, ANumberThatNoFloatHoldsIsRefused) {
  const Json object = parse(R"({"a":1e300})");
  JsonFields fields(object, "", &kSeedDialect);
  double number = 0.5;
  fields.number("a", number, {});
  EXPECT_EQ(fields.finish().message(), "a is 1e+300, but must be a finite number");
  EXPECT_EQ(number, 0.5);
}

TEST(SeedObjectTest, KeysThatNobodyAskedForAreWarnings) {
  const Json object = parse(R"({"known":1,"other":2,"third":null})");
  JsonFields fields(object, "", &kSeedDialect);
  fields.any("known");
  std::vector<std::string> warnings;
  warn_of_unknown(fields, warnings);
  EXPECT_EQ(warnings, (std::vector<std::string>{"other is not known and has no effect",
                                                "third is not known and has no effect"}));
  EXPECT_TRUE(fields.finish().ok());
}

TEST(SeedObjectTest, SomethingElseThanAnObjectIsRefused) {
  for (const char* text : {"[]", "1", "\"text\"", "true", "null"}) {
    const Result<Json> parsed = parse_object(text, /*may_be_empty=*/true);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.status().message().find("must be an object"), std::string::npos) << text;
    EXPECT_EQ(parsed.status().field(), "") << text;
  }
}

TEST(SeedObjectTest, NothingIsAnObjectOnlyWhereItMayBe) {
  for (const char* text : {static_cast<const char*>(nullptr), "", "  \n"}) {
    EXPECT_TRUE(parse_object(text, /*may_be_empty=*/true).ok());
    EXPECT_FALSE(parse_object(text, /*may_be_empty=*/false).ok());
  }
  EXPECT_TRUE(parse_object("{}", /*may_be_empty=*/false).ok());
}

}  // namespace
}  // namespace outrider::rpcserver
