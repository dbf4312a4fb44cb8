// Texts in lines that fit a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace outrider {

// `text` broken at spaces into lines of at most `width` columns, all but the first indented by
// `indent` spaces (which count). Newlines in `text` stay.
std::string wrap(const std::string& text, std::size_t indent, std::size_t width);

}  // namespace outrider
