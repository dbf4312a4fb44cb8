// UTF-8 (RFC 3629): what is valid, and where a text may be cut.
//
// Valid means: no bytes C0, C1, F5 to FF, no overlong forms, no surrogates (U+D800 to U+DFFF),
// nothing above U+10FFFF, nothing cut short. Tested by utf8_test.cc against the obvious decoder
// over all strings of up to three bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace outrider {

// Offset of the first byte of the first malformed sequence in `text`, or nothing when all is valid.
// A character that is cut short by the end of the text is malformed.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

// OK when `text` is valid; else kInvalidArgument with that byte and its offset. `what` begins the
// message: "the prompt".
Status check_utf8(std::string_view text, std::string_view what);

// Length of the longest prefix of `text` that does not end inside a so far valid multibyte
// character; between size() - 3 and size(). What lies behind it may become valid when bytes follow,
// so a stream of text holds it back. Bytes that can no longer become valid are not held back.
std::size_t complete_utf8_prefix(std::string_view text);

// `text` with U+FFFD for each byte that belongs to no valid character; valid text as it is. It
// grows with `text` where that ends at complete_utf8_prefix().
std::string with_replacements(std::string_view text);

}  // namespace outrider
