// The JSON numbers between two bounds, as an expression of a GBNF grammar.
//
// llama-common's converter keeps to bounds of integers up to 16 digits and passes over those of
// other numbers. Here both are written digit by digit: below the first digit that leaves a bound,
// the rest is free. Numbers are written without an exponent, with at most 16 digits before the
// point. A bound has at most some 40 digits, so an expression has at most a few KiB.
//
// Tested by number_range_test.cc, against all short numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace outrider::llama {

struct NumberRange {
  struct Bound {
    std::string number;  // as JSON writes it: "-1.5e-3"
    bool exclusive = false;
  };
  std::optional<Bound> least;
  std::optional<Bound> most;
  int max_decimals = 16;  // digits behind the point; 0: whole numbers
};

// Errors: kInvalidArgument: there is no such number, or a bound has more digits than are kept to.
Result<std::string> number_expression(const NumberRange& range);

}  // namespace outrider::llama
