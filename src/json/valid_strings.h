// The strings of a JSON text as JSON has them, where a model or a client wrote something else.
//
// Tested by json_test.cc.
#pragma once

#include <string>
#include <string_view>

namespace outrider::json {

// `text`, the beginning of a JSON text or all of it, with valid strings: control characters are
// escaped, a backslash before a character that is never escaped is left out, and half of a pair of
// surrogates is U+FFFD. What is outside of strings stays, whatever it is. An escape that is not
// whole at the end of `text` is left out, so the longer the text, the more of the same is returned.
std::string valid_strings(std::string_view text);

// `text` with the last of these alone, and as long: half of a pair of surrogates in a string is
// U+FFFD. All else stays, also where it is not valid.
std::string whole_surrogates(std::string_view text);

}  // namespace outrider::json
