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

#include "json/last_resort.h"

namespace outrider::json {

// A value. Objects keep their fields in the order in which they were written.
//
// The library's destructor allocates: it moves a value's children to a std::vector, so as not to
// call itself. Where there is no memory for that, a destructor would throw and the process end. So
// the value is a type of our own, whose std::allocator, which that vector uses and nothing else
// does, has a last resort (json/last_resort.h).
template <class Key, class T, class Compare, class Allocator>
struct Fields : nlohmann::ordered_map<Key, T, Compare, Allocator> {
  using nlohmann::ordered_map<Key, T, Compare, Allocator>::ordered_map;
};

template <class T>
struct Allocator : std::allocator<T> {
  Allocator() = default;
  template <class U>
  Allocator(const Allocator<U>& /*other*/) {}  // NOLINT: implicit, as allocators have it
  template <class U>
  struct rebind {  // NOLINT: the name that allocators give it
    using other = Allocator<U>;
  };
};

using Json = nlohmann::basic_json<Fields, std::vector, std::string, bool, std::int64_t,
                                  std::uint64_t, double, Allocator>;

}  // namespace outrider::json

// Not for code outside the library's destructor.
template <>
struct std::allocator<outrider::json::Json> {
  using value_type = outrider::json::Json;

  allocator() = default;
  template <class U>
  allocator(const std::allocator<U>& /*other*/) {}  // NOLINT: implicit
  value_type* allocate(std::size_t n) {
    return static_cast<value_type*>(outrider::json::allocate_in_destructor(n * sizeof(value_type)));
  }
  void deallocate(value_type* memory, std::size_t /*n*/) {
    outrider::json::deallocate_in_destructor(memory);
  }
  bool operator==(const allocator& /*other*/) const { return true; }
};

namespace outrider::json {

inline constexpr std::size_t kMaxDepth = 64;  // arrays and objects inside each other, when parsing
inline constexpr std::size_t kMaxFields = 1024;  // of one object, when parsing

// Offset of the first bracket of `text` that opens more than kMaxDepth levels, or npos. Brackets
// inside strings do not count; the text need not be JSON. For texts that others parse: deep nesting
// costs a reader a stack frame a level, when a value is built or used.
std::size_t too_deep(std::string_view text);

// Bytes of the object at the beginning of `text`, up to the brace that closes it; 0: it is not
// there yet. Whether it is JSON besides is not looked at.
std::size_t object_length(std::string_view text);

// `value` in one line, without a newline. Bytes that are not UTF-8 become U+FFFD; infinite and
// undefined numbers become null.
std::string encode(const Json& value);

struct Parsed {
  std::optional<Json> value;
  std::string error;  // when there is no value: "line 1, column 5: ..."; without the place
                      // for a field that is there twice, or one too many

  bool ok() const { return value.has_value(); }
};

// The one value that `text` holds. Anything else behind it, invalid UTF-8, more than kMaxDepth
// levels, more than kMaxFields fields in an object and two of the same name are errors. Throws
// nothing but std::bad_alloc.
Parsed parse(std::string_view text);

// The same of what a client sent. Half of a pair of surrogates ("\ud83d"), which RFC 8259 (8.2) has
// within JSON's grammar, is read as U+FFFD: JSON.stringify writes it where JavaScript cut a text in
// the middle of a character, and a conversation that holds it could not go on.
Parsed parse_sent(std::string_view text);

// The same as parse() of what a model wrote. What parse() refuses and says what was meant is read:
// strings as valid_strings() makes them (json/valid_strings.h), and of two fields of one name the
// last one counts, as with most readers.
Parsed parse_written(std::string_view text);

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
