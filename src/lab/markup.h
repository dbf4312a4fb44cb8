// What HTML and SVG pages are made of: texts that cannot break out of them.
#pragma once

#include <string>
#include <string_view>

namespace outrider::lab {

// `text` for an element's content or a quoted attribute: & < > " ' are spelled out, bytes that XML
// does not allow (control characters other than tab and newline, invalid UTF-8) become U+FFFD.
std::string escape_markup(std::string_view text);

}  // namespace outrider::lab
