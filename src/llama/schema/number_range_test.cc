#include "llama/schema/number_range.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "llama/grammar/gbnf.h"
#include "llama/schema/as_regex_test.h"

namespace outrider::llama {
namespace {

// In thousandths.
std::string decimal(std::int64_t thousandths) {
  const std::int64_t size = thousandths < 0 ? -thousandths : thousandths;
  std::string decimals = std::to_string(1000 + size % 1000).substr(1);
  return (thousandths < 0 ? "-" : "") + std::to_string(size / 1000) + "." + decimals;
}

struct Written {
  std::string text;
  std::int64_t thousandths;
};

// Numbers around all digits of the bounds below, with up to two digits behind the point, as JSON
// may write them.
std::vector<Written> all_short_numbers() {
  std::vector<Written> all;
  for (const int whole : {0, 1, 2, 8, 9, 10, 11, 12, 13, 90, 98, 99, 100, 101, 119}) {
    for (int n_decimals = 0; n_decimals <= 2; ++n_decimals) {
      const int n = n_decimals == 0 ? 1 : n_decimals == 1 ? 10 : 100;
      for (int decimals = 0; decimals < n; ++decimals) {
        std::string text = std::to_string(whole);
        if (n_decimals > 0) text += "." + std::to_string(n + decimals).substr(1);
        const std::int64_t value = whole * 1000 + decimals * (1000 / n);
        all.push_back({text, value});
        if (value > 0) all.push_back({"-" + text, -value});
      }
    }
  }
  return all;
}

void expect_range(const NumberRange& range, std::optional<std::int64_t> least,
                  std::optional<std::int64_t> most, const std::vector<Written>& numbers) {
  const std::string what = (least ? decimal(*least) : "none") + " to " +
                           (most ? decimal(*most) : "none") + " with " +
                           std::to_string(range.max_decimals) + " decimals, " +
                           (range.least && range.least->exclusive ? "above " : "") +
                           (range.most && range.most->exclusive ? "below" : "");
  const Result<std::string> expression = number_expression(range);
  const std::regex regex(expression.ok() ? as_regex(*expression) : "none");
  if (expression.ok()) {
    ASSERT_TRUE(check_gbnf("root ::= " + *expression).ok()) << what << "\n" << *expression;
  }
  for (const Written& number : numbers) {
    const std::size_t point = number.text.find('.');
    const std::size_t n_decimals = point == std::string::npos ? 0 : number.text.size() - point - 1;
    bool inside = n_decimals <= static_cast<std::size_t>(range.max_decimals);
    if (least) {
      inside = inside && (range.least->exclusive ? number.thousandths > *least
                                                 : number.thousandths >= *least);
    }
    if (most) {
      inside = inside &&
               (range.most->exclusive ? number.thousandths < *most : number.thousandths <= *most);
    }
    ASSERT_EQ(std::regex_match(number.text, regex), inside)
        << number.text << " in " << what << "\n"
        << (expression.ok() ? *expression : expression.status().message());
  }
}

TEST(NumberRangeTest, HoldsTheNumbersBetweenItsBoundsAndNoOthers) {
  const std::vector<Written> numbers = all_short_numbers();
  const std::vector<std::optional<std::int64_t>> bounds = {
      std::nullopt, -100000, -12340, -10000, -1010, -1000, -250,  -10,   0,     5,
      10,           250,     990,    1000,   1500,  9990,  10000, 12340, 99000, 100000};
  for (const std::optional<std::int64_t> least : bounds) {
    for (const std::optional<std::int64_t> most : bounds) {
      for (int exclusive = 0; exclusive < 4; ++exclusive) {
        NumberRange range{.max_decimals = exclusive == 1 ? 1 : exclusive == 2 ? 0 : 16};
        if (least) range.least = {decimal(*least), (exclusive & 1) != 0};
        if (most) range.most = {decimal(*most), (exclusive & 2) != 0};
        if (least && most && *least > *most) {
          EXPECT_FALSE(number_expression(range).ok());
          continue;
        }
        expect_range(range, least, most, numbers);
        if (HasFatalFailure()) return;
      }
    }
  }
}

std::regex of(const std::string& least, const std::string& most) {
  const Result<std::string> expression =
      number_expression({.least = NumberRange::Bound{least}, .most = NumberRange::Bound{most}});
  EXPECT_TRUE(expression.ok()) << expression.status().message();
  return std::regex(expression.ok() ? as_regex(*expression) : "none");
}

TEST(NumberRangeTest, ReadsBoundsAsJsonWritesThem) {
  EXPECT_TRUE(std::regex_match("0.00000015", of("1e-7", "2E-7")));
  EXPECT_FALSE(std::regex_match("0.00000025", of("1e-7", "2E-7")));
  EXPECT_TRUE(std::regex_match("1500", of("1.5e3", "1.5e+3")));
  EXPECT_FALSE(std::regex_match("1501", of("1.5e3", "1.5e+3")));
  EXPECT_TRUE(std::regex_match("0", of("-0.0", "0")));
  // No number here has more than 16 digits before the point.
  EXPECT_TRUE(std::regex_match("9999999999999999", of("0", "1e300")));
  EXPECT_TRUE(std::regex_match("-9007199254740991", of("-9007199254740991", "9007199254740991")));
  EXPECT_FALSE(std::regex_match("-9007199254740992", of("-9007199254740991", "9007199254740991")));
}

TEST(NumberRangeTest, SaysWhatItCannotKeepTo) {
  const auto error = [](const std::string& least, const std::string& most) {
    return number_expression({.least = NumberRange::Bound{least}, .most = NumberRange::Bound{most}})
        .status()
        .message();
  };
  EXPECT_NE(error("2", "1").find("no number"), std::string::npos);
  EXPECT_NE(error("1e20", "1e21").find("no number"), std::string::npos);
  EXPECT_NE(error("1e-30", "1").find("behind the point"), std::string::npos);
  EXPECT_NE(error("0", "1e999").find("too many digits"), std::string::npos);
}

}  // namespace
}  // namespace outrider::llama
