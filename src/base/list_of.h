// Words in a row, for messages.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// "a, b and c"; "" for none.
std::string list_of(const std::vector<std::string>& words, std::string_view last = " and ");

// The same of names.
std::string list_of_names(std::span<const std::string_view> names, std::string_view last = " and ");

// Each but the first with `between` before it.
std::string joined(const std::vector<std::string>& words, std::string_view between);

}  // namespace outrider
