#include "llama/schema/number_range.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>
#include <vector>

#include "llama/schema/gbnf_text.h"

namespace outrider::llama {
namespace {

constexpr std::size_t kMaxWhole = 16;       // digits before the point
constexpr std::size_t kMaxDecimals = 20;    // of a bound
constexpr std::int64_t kMaxExponent = 400;  // of a bound

// Nothing: no text is possible. An empty text: nothing more has to be said.
using Expression = std::optional<std::string>;

// A number that is not negative, in digits, without zeros that say nothing.
struct Magnitude {
  std::string whole = "0";
  std::string decimals;
  bool exclusive = false;

  bool is_zero() const { return whole == "0" && decimals.empty(); }
};

struct Signed {
  bool negative = false;
  Magnitude magnitude;
};

// REQUIRES: the bound's number is one of JSON
Result<std::optional<Signed>> digits_of(const std::optional<NumberRange::Bound>& given) {
  if (!given) return std::optional<Signed>();
  const NumberRange::Bound& bound = *given;
  std::string_view text = bound.number;
  Signed number;
  number.negative = text.starts_with('-');
  if (number.negative) text.remove_prefix(1);
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  std::int64_t exponent = 0;
  if (e < text.size()) {
    const std::size_t begin = e + (text[e + 1] == '+' ? 2 : 1);
    std::from_chars(text.data() + begin, text.data() + text.size(), exponent);
  }
  const std::size_t point = std::min(text.find('.'), e);
  std::string digits(text.substr(0, point));
  if (point < e) digits += text.substr(point + 1, e - point - 1);
  std::int64_t whole = static_cast<std::int64_t>(point) + exponent;
  if (std::abs(exponent) > kMaxExponent) {
    return invalid_argument("the bound " + bound.number + " has too many digits");
  }
  if (whole <= 0) {
    digits.insert(0, static_cast<std::size_t>(1 - whole), '0');
    whole = 1;
  }
  digits.resize(std::max(digits.size(), static_cast<std::size_t>(whole)), '0');
  std::string before = digits.substr(0, static_cast<std::size_t>(whole));
  std::string behind = digits.substr(static_cast<std::size_t>(whole));
  before.erase(0, std::min(before.find_first_not_of('0'), before.size() - 1));
  behind.erase(behind.find_last_not_of('0') + 1);
  if (behind.size() > kMaxDecimals) {
    return invalid_argument("the bound " + bound.number + " has more than " +
                            std::to_string(kMaxDecimals) + " digits behind the point");
  }
  number.magnitude = {std::move(before), std::move(behind), bound.exclusive};
  number.negative = number.negative && !number.magnitude.is_zero();
  return std::optional<Signed>(std::move(number));
}

std::string digit(char from, char to) {
  if (from == to) return std::string("\"") + from + "\"";
  return std::string("[") + from + "-" + to + "]";
}

std::string in_turn(std::string_view first, const std::string& rest) {
  return std::string(first) + (rest.empty() ? "" : " ") + rest;
}

Expression any_of(const std::vector<std::string>& ways) {
  return ways.empty() ? std::nullopt : Expression(one_of(ways));
}

// Numbers from `least` to `most` that are not negative.
class RangeWriter {
 public:
  RangeWriter(Magnitude least, std::optional<Magnitude> most, int max_decimals)
      : least_(std::move(least)),
        most_(std::move(most)),
        max_decimals_(static_cast<std::size_t>(max_decimals)) {
    if (most_ && most_->whole.size() > kMaxWhole) most_.reset();
  }

  Expression write() {
    std::vector<std::string> alternatives;
    const auto add = [&](const Expression& numbers) {
      if (numbers) alternatives.push_back(*numbers);
    };
    const std::size_t first = least_.whole.size();
    const std::size_t last = most_ ? most_->whole.size() : kMaxWhole + 1;
    if (first > std::min(last, kMaxWhole)) return std::nullopt;
    n_whole_ = first;
    add(whole(0, true, first == last));
    if (first + 1 < last) {  // the lengths between are free
      const std::string more = "{" + std::to_string(first) + "," + std::to_string(last - 2) + "}";
      add(in_turn("[1-9] [0-9]" + more, any_decimals()));
    }
    if (most_ && first < last) {
      n_whole_ = last;
      add(whole(0, false, true));
    }
    return any_of(alternatives);
  }

 private:
  // `low`, `high`: the digits so far are those of the bound, so that the next one may not be
  // beyond the bound's.
  using Next = std::function<Expression(bool low, bool high)>;

  static Expression split(char from, char to, bool low, bool high, const Next& next) {
    struct Digits {
      char first;
      char last;
      std::string rest;
    };
    std::vector<Digits> all;
    const auto add = [&all, &next](char first, char last, bool stays_low, bool stays_high) {
      const Expression rest = next(stays_low, stays_high);
      if (!rest) return;
      const bool same = !all.empty() && all.back().rest == *rest && all.back().last + 1 == first;
      if (same) {
        all.back().last = last;
      } else {
        all.push_back({first, last, *rest});
      }
    };
    const char free_from = static_cast<char>(from + (low ? 1 : 0));
    const char free_to = static_cast<char>(to - (high ? 1 : 0));
    if (low && from <= to) add(from, from, true, high && from == to);
    if (free_from <= free_to) add(free_from, free_to, false, false);
    if (high && (low ? from < to : from <= to)) add(to, to, false, true);
    std::vector<std::string> alternatives;
    for (const Digits& digits : all) {
      alternatives.push_back(in_turn(digit(digits.first, digits.last), digits.rest));
    }
    return any_of(alternatives);
  }

  // From the digit `i` before the point on.
  Expression whole(std::size_t i, bool low, bool high) {
    if (i == n_whole_) return decimals(0, low, high);
    const char smallest = i == 0 && n_whole_ > 1 ? '1' : '0';
    return split(low ? least_.whole[i] : smallest, high ? most_->whole[i] : '9', low, high,
                 [this, i](bool l, bool h) { return whole(i + 1, l, h); });
  }

  // From the digit `i` behind the point on.
  Expression decimals(std::size_t i, bool low, bool high) {
    if (!low && !high) return i == 0 ? any_decimals() : any_digits(max_decimals_ - i);
    const bool below = low && (i < least_.decimals.size() || least_.exclusive);
    const bool above = high && i >= most_->decimals.size() && most_->exclusive;
    const bool may_end = !below && !above;
    Expression more;
    if (i < max_decimals_) {
      more = split(low ? at(least_.decimals, i) : '0', high ? at(most_->decimals, i) : '9', low,
                   high, [this, i](bool l, bool h) { return decimals(i + 1, l, h); });
    }
    if (!more) return may_end ? Expression("") : std::nullopt;
    if (i == 0) more = "\".\" " + *more;
    return may_end ? "(" + *more + ")?" : *more;
  }

  static char at(const std::string& digits, std::size_t i) {
    return i < digits.size() ? digits[i] : '0';
  }

  static std::string any_digits(std::size_t most) {
    return most == 0 ? "" : "[0-9]{0," + std::to_string(most) + "}";
  }

  std::string any_decimals() const {
    if (max_decimals_ == 0) return "";
    return "(\".\" [0-9]{1," + std::to_string(max_decimals_) + "})?";
  }

  Magnitude least_;
  std::optional<Magnitude> most_;
  std::size_t max_decimals_;
  std::size_t n_whole_ = 0;
};

}  // namespace

Result<std::string> number_expression(const NumberRange& range) {
  OUTRIDER_ASSIGN_OR_RETURN(const std::optional<Signed> least, digits_of(range.least));
  OUTRIDER_ASSIGN_OR_RETURN(const std::optional<Signed> most, digits_of(range.most));
  const Magnitude zero;
  const Magnitude above_zero{.whole = "0", .decimals = "", .exclusive = true};
  std::vector<std::string> alternatives;
  if (!most || !most->negative) {
    RangeWriter positive(least && !least->negative ? least->magnitude : zero,
                         most ? std::optional(most->magnitude) : std::nullopt, range.max_decimals);
    if (const Expression numbers = positive.write()) alternatives.push_back(*numbers);
  }
  if (!least || least->negative) {
    RangeWriter negative(most && most->negative ? most->magnitude : above_zero,
                         least ? std::optional(least->magnitude) : std::nullopt,
                         range.max_decimals);
    if (const Expression numbers = negative.write()) alternatives.push_back("\"-\" " + *numbers);
  }
  if (const Expression all = any_of(alternatives)) return *all;
  return invalid_argument("there is no number of at most " + std::to_string(kMaxWhole) +
                          " digits within the bounds");
}

}  // namespace outrider::llama
