// A number that is written in a text. Tested by number_from_test.cc.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace outrider {

// The number that `text` is, all of it, as C++ writes them ("40", "-1", "0.8", "1e-3"; no "+", no
// spaces). Nothing: it is none, or beyond what Number holds.
template <typename Number>
std::optional<Number> number_from(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

}  // namespace outrider
