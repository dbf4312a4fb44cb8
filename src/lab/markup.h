// What HTML and SVG pages are made of: texts that cannot break out of them, and short numbers.
#pragma once

#include <string>
#include <string_view>

namespace outrider::lab {

// `text` for an element's content or a quoted attribute: & < > " ' are spelled out, bytes that XML
// does not allow (control characters other than tab and newline, invalid UTF-8) become U+FFFD.
std::string escape_markup(std::string_view text);

// With so many digits behind the point. "-0" is "0"; "-" for what is not finite.
std::string fixed(double value, int digits);

// As short as it can be said to `digits` significant ones: "0.25", "12", "1500".
std::string shortly(double value, int digits = 3);

}  // namespace outrider::lab
