#include "rpcserver/fields.h"

#include <gtest/gtest.h>

#include <limits>

namespace outrider::rpcserver {
namespace {

using json::Json;

Json parse(const std::string& text) { return *json::parse(text).value; }

TEST(FieldsTest, NullStandsForTheDefault) {
  const Json object = parse(R"({"a":null,"b":null,"c":null,"d":null})");
  Fields fields(object);
  bool flag = true;
  std::string text = "kept";
  std::int64_t number = 7;
  double fraction = 0.5;
  EXPECT_FALSE(fields.read("a", flag));
  EXPECT_FALSE(fields.read("b", text));
  EXPECT_FALSE(fields.read("c", number, 0, 10));
  EXPECT_FALSE(fields.read("d", fraction, 0.0, 1.0));
  EXPECT_TRUE(flag);
  EXPECT_EQ(text, "kept");
  EXPECT_EQ(number, 7);
  EXPECT_EQ(fraction, 0.5);
  EXPECT_FALSE(fields.refusal());
  EXPECT_TRUE(fields.unknown().empty());
}

TEST(FieldsTest, WholeNumbersMayBeWrittenWithAPoint) {
  EXPECT_EQ(whole_number(parse("40"), 0, 100), 40);
  EXPECT_EQ(whole_number(parse("40.0"), 0, 100), 40);
  EXPECT_EQ(whole_number(parse("-1"), -1, 100), -1);
  EXPECT_EQ(whole_number(parse("4e1"), 0, 100), 40);
  EXPECT_EQ(whole_number(parse("40.5"), 0, 100), std::nullopt);
  EXPECT_EQ(whole_number(parse("101"), 0, 100), std::nullopt);
  EXPECT_EQ(whole_number(parse("-1"), 0, 100), std::nullopt);
  EXPECT_EQ(whole_number(parse("1e300"), 0, 100), std::nullopt);
  EXPECT_EQ(whole_number(parse("true"), 0, 100), std::nullopt);
  EXPECT_EQ(whole_number(parse("\"40\""), 0, 100), std::nullopt);
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(whole_number(parse("9223372036854775807"), kMin, kMax), kMax);
  EXPECT_EQ(whole_number(parse("18446744073709551615"), kMin, kMax), std::nullopt);
  EXPECT_EQ(whole_number(parse("-9223372036854775808"), kMin, kMax), kMin);
  EXPECT_EQ(whole_number(parse("5"), -10, -1), std::nullopt);
}

TEST(FieldsTest, AWrongKindIsRefusedWithTheFieldAndWhatItIs) {
  const Json object = parse(R"({"a":"yes"})");
  Fields fields(object, "outer.");
  bool flag = false;
  EXPECT_FALSE(fields.read("a", flag));
  ASSERT_TRUE(fields.refusal());
  EXPECT_EQ(fields.refusal()->field, "outer.a");
  EXPECT_EQ(fields.refusal()->error, "outer.a is a string, but must be true or false");
}

TEST(FieldsTest, ANumberOutsideItsRangeIsRefusedWithTheRange) {
  const Json object = parse(R"({"a":12,"b":1.5})");
  Fields fields(object);
  std::int64_t number = 3;
  double fraction = 0.25;
  fields.read("b", fraction, 0.0, 1.0);
  EXPECT_EQ(fields.refusal()->error, "b is 1.5, but must be a number from 0.0 to 1.0");
  fields.read("a", number, 0, 9);
  EXPECT_EQ(fields.refusal()->field, "b") << "the first refusal counts";
  EXPECT_EQ(number, 3);
  EXPECT_EQ(fraction, 0.25);
}

TEST(FieldsTest, KeysThatNobodyAskedForAreWarnings) {
  const Json object = parse(R"({"known":1,"other":2,"third":null})");
  Fields fields(object);
  fields.find("known");
  EXPECT_EQ(fields.unknown(), (std::vector<std::string>{"other is not known and has no effect",
                                                        "third is not known and has no effect"}));
}

TEST(FieldsTest, SomethingElseThanAnObjectIsRefused) {
  for (const char* text : {"[]", "1", "\"text\"", "true", "null"}) {
    const ParsedObject parsed = parse_object(text, /*may_be_empty=*/true);
    ASSERT_TRUE(parsed.refusal) << text;
    EXPECT_NE(parsed.refusal->error.find("must be an object"), std::string::npos) << text;
  }
}

TEST(FieldsTest, NothingIsAnObjectOnlyWhereItMayBe) {
  for (const char* text : {static_cast<const char*>(nullptr), "", "  \n"}) {
    EXPECT_FALSE(parse_object(text, /*may_be_empty=*/true).refusal);
    EXPECT_TRUE(parse_object(text, /*may_be_empty=*/false).refusal);
  }
  EXPECT_FALSE(parse_object("{}", /*may_be_empty=*/false).refusal);
}

}  // namespace
}  // namespace outrider::rpcserver
