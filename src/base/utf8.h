// UTF-8, as far as streaming and error messages need it (RFC 3629: no surrogates, no overlong
// forms, nothing above U+10FFFF).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace outrider {

// Byte offset of the first sequence that is not valid UTF-8, or nothing when all is valid. A
// character cut off at the end counts as invalid.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

// Length of the longest prefix that does not end inside a multibyte character which is valid so far.
// Bytes that can never become valid do not hold anything back.
// Example: "a\xC3" -> 1, "a\xC3\xA4" -> 3, "a\xFF" -> 2.
std::size_t complete_utf8_prefix(std::string_view text);

}  // namespace outrider
