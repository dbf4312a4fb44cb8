#include "base/field.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace outrider {
namespace {

enum class Mode { kAuto, kOn };
constexpr std::array<std::string_view, 2> kModes = {"auto", "on"};

struct Options {
  float share = 0.5f;
  std::int32_t count = 3;
  std::int64_t time_ms = 0;
  std::optional<std::int32_t> keep = {};
  std::int32_t width = -1;
  std::vector<std::string> texts = {"a"};
  Mode mode = Mode::kAuto;
};

constexpr Field<Options> kShare{.name = "share",
                                .help = "a part of it",
                                .place = &Options::share,
                                .range = {.min = 0.0, .max = 1.0, .above_min = true},
                                .off = {Off::Where::kFrom, 1.0}};
constexpr Field<Options> kCount{.name = "count",
                                .help = "how many",
                                .place = &Options::count,
                                .range = {.min = -1.0, .max = 20.0},
                                .off = {Off::Where::kUpTo, 0.0}};
constexpr Field<Options> kTime{.name = "time_ms",
                               .help = "how long",
                               .place = &Options::time_ms,
                               .range = {.min = 0.0, .max = 9223372036854775807.0}};
constexpr Field<Options> kKeep{
    .name = "keep", .help = "", .place = &Options::keep, .range = {.min = -1.0, .max = kMaxInt32}};
constexpr Field<Options> kWidth{.name = "width",
                                .help = "how wide",
                                .place = OrAuto<Options>{&Options::width, -1},
                                .range = {.min = 1.0, .max = 64.0}};
constexpr Field<Options> kTexts{.name = "texts",
                                .help = "what is said",
                                .place = &Options::texts,
                                .range = {.min = 1.0, .max = 3.0},
                                .most = 2};
constexpr Field<Options> kMode{.name = "mode", .help = "", .place = choice<&Options::mode>(kModes)};

TEST(Field, LargeLimitsAreWrittenOut) {
  EXPECT_EQ(range_text({.min = 0.0, .max = 100000.0}), "from 0 to 100000");
  EXPECT_EQ(help_text("tokens", "integer", {.min = 0.0, .max = 1e9}, {}, 0),
            "tokens (0 to 1000000000)");
  EXPECT_EQ(help_text("a part", "number", {.min = 0.005, .max = 1.0}, {}, 0),
            "a part (0.005 to 1)");
}

TEST(Field, NumbersOutsideTheirRangeAreRefusedByName) {
  EXPECT_TRUE(check(kShare, Options{.share = 1.0f}).ok());
  for (const float wrong : {0.0f, -0.5f, 1.5f, std::nanf(""), INFINITY}) {
    EXPECT_EQ(check(kShare, Options{.share = wrong}).field(), "share") << wrong;
  }
  EXPECT_EQ(check(kShare, Options{.share = 1.5f}).message(),
            "share is 1.5, but must be above 0 and at most 1 (1 switches it off)");
  EXPECT_EQ(check(kCount, Options{.count = 21}).message(),
            "count is 21, but must be a whole number from -1 to 20 (0 or less switches it off)");
  EXPECT_TRUE(check(kCount, Options{.count = -1}).ok());
  EXPECT_FALSE(check(kTime, Options{.time_ms = -1}).ok());
  EXPECT_TRUE(check(kTime, Options{.time_ms = std::numeric_limits<std::int64_t>::max()}).ok());
}

TEST(Field, WhatIsNotSetOrAutomaticHasNoRange) {
  EXPECT_TRUE(check(kKeep, Options()).ok());
  EXPECT_FALSE(check(kKeep, Options{.keep = -2}).ok());
  EXPECT_TRUE(check(kWidth, Options()).ok());
  EXPECT_FALSE(check(kWidth, Options{.width = 0}).ok());
  EXPECT_TRUE(check(kMode, Options()).ok());
}

TEST(Field, TextsAreCountedAndMeasured) {
  EXPECT_TRUE(check(kTexts, Options{.texts = {"a", "abc"}}).ok());
  const Status many = check(kTexts, Options{.texts = {"a", "b", "c"}});
  EXPECT_EQ(many.message(), "texts holds 3 texts, at most 2 can be");
  const Status empty = check(kTexts, Options{.texts = {"a", ""}});
  EXPECT_EQ(empty.field(), "texts[1]");
  EXPECT_EQ(empty.message(), "texts[1] has 0 bytes, but must have 1 to 3");
}

TEST(Field, OfATableTheFirstFailureCounts) {
  const std::array<Field<Options>, 2> table = {kShare, kCount};
  const std::span<const Field<Options>> fields = table;
  EXPECT_TRUE(check(fields, Options()).ok());
  EXPECT_EQ(check(fields, Options{.share = 2.0f, .count = 99}).field(), "share");
  EXPECT_EQ(check(fields, Options{.count = 99}).field(), "count");
}

TEST(Field, OnlyWhatIsOnAndNotAsItIsUnaskedIsUsed) {
  EXPECT_FALSE(is_used(kShare, Options()));
  EXPECT_FALSE(is_used(kShare, Options{.share = 1.0f}));
  EXPECT_TRUE(is_used(kShare, Options{.share = 0.25f}));
  EXPECT_FALSE(is_used(kCount, Options{.count = -1}));
  EXPECT_TRUE(is_used(kCount, Options{.count = 4}));
}

TEST(Field, WhatIsPutBackIsAsItIsUnasked) {
  Options options{.share = 0.25f, .count = 7, .texts = {"b"}};
  put_back(kShare, options);
  put_back(kTexts, options);
  EXPECT_EQ(options.share, 0.5f);
  EXPECT_EQ(options.texts, std::vector<std::string>{"a"});
  EXPECT_EQ(options.count, 7);
}

TEST(Field, HelpTypeAndValueAreToldInWords) {
  EXPECT_EQ(full_help(kShare), "a part of it; 1 switches it off (above 0 to 1)");
  EXPECT_EQ(full_help(kCount), "how many; 0 or less switches it off (-1 to 20)");
  EXPECT_EQ(full_help(kTime), "how long (at least 0)");
  EXPECT_EQ(full_help(kTexts), "what is said; at most 2; 1 to 3 bytes each");
  EXPECT_EQ(full_help(kWidth), "how wide (1 to 64)");
  EXPECT_EQ(kShare.type(), "number");
  EXPECT_EQ(kCount.type(), "integer");
  EXPECT_EQ(kWidth.type(), "integer | string");
  EXPECT_EQ(kMode.type(), "string");
  EXPECT_EQ(kTexts.type(), "string | array");
  const Options o;
  EXPECT_EQ(value_text(kShare, o), "0.5");
  EXPECT_EQ(value_text(kCount, o), "3");
  EXPECT_EQ(value_text(kWidth, o), "auto");
  EXPECT_EQ(value_text(kWidth, Options{.width = 8}), "8");
  EXPECT_EQ(value_text(kMode, Options{.mode = Mode::kOn}), "on");
  EXPECT_EQ(value_text(kKeep, o), "");
}

TEST(Range, WholeNumbersAreThoseThatADoubleHoldsExactly) {
  constexpr double kLast = 9007199254740992.0;  // 2^53
  for (const double whole : {0.0, -3.0, 1e9, kLast, -kLast}) EXPECT_TRUE(is_whole(whole)) << whole;
  for (const double other : {0.5, kLast + 2.0, kNoLimit, std::nan("")}) {
    EXPECT_FALSE(is_whole(other)) << other;
  }
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(0.1f), "0.1");
  EXPECT_EQ(shortest(1e100), "1e+100");
}

TEST(Range, LimitsOfWholeNumbersStayInside64Bits) {
  EXPECT_EQ(whole_limit(9223372036854775807.0), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(whole_limit(-kNoLimit), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(whole_limit(-3.0), -3);
}

}  // namespace
}  // namespace outrider
