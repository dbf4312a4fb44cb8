// JSON: encoding, and parsing of what others wrote.
//
// The library behind it is nlohmann/json, the one that llama.cpp carries: a second version in one
// process would clash. This layer knows nothing of the project, so failures are plain texts.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace outrider::json {

using Json = nlohmann::ordered_json;  // keeps the fields in the order in which they were written

inline constexpr std::size_t kMaxDepth = 64;  // arrays and objects inside each other, when parsing
inline constexpr std::size_t kMaxFields = 1024;  // of one object, when parsing

// Offset of the first bracket of `text` that opens more than kMaxDepth levels, or npos. Brackets
// inside strings do not count; the text need not be JSON. For texts that others parse: deep nesting
// costs a reader a stack frame a level, when a value is built or used.
std::size_t too_deep(std::string_view text);

// `value` in one line, without a newline. Bytes that are not UTF-8 become U+FFFD; infinite and
// undefined numbers become null.
std::string encode(const Json& value);

// The same over several lines, indented by two spaces.
std::string encode_pretty(const Json& value);

struct Parsed {
  std::optional<Json> value;
  std::string error;  // when there is no value: "line 1, column 5: ..."

  bool ok() const { return value.has_value(); }
};

// The one value that `text` holds. Anything else behind it, invalid UTF-8, more than kMaxDepth
// levels, more than kMaxFields fields in an object and two of the same name are errors. Throws
// nothing but std::bad_alloc.
Parsed parse(std::string_view text);

// Calls `on_line` with the value and the number (from 1) of each line of `text`, until it returns a
// text that says what is wrong with it. Blank lines are passed over; the last line needs no
// newline, and lines may end in "\r\n". A byte order mark at the start is skipped. Returns "", or
// the first error as "line 3, column 7: ..." or "line 3: " and on_line's text.
std::string parse_lines(
    std::string_view text,
    const std::function<std::string(const Json& value, std::size_t line)>& on_line);

// What kind of value it is, for messages: "null", "a number", "a string", "an array", ...
std::string_view kind(const Json& value);

}  // namespace outrider::json
