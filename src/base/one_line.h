// Texts that were made elsewhere, in lines of our own and on terminals.
//
// Control characters are those below U+0020, U+007F, and U+0080 to U+009F: in UTF-8 0xC2 and a byte
// below 0xA0, of which U+009B begins what ESC [ does.
// Tested by one_line_test.cc.
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// `text` without newlines and other control characters (they become spaces), so that a message
// stays one line and no file name can write escape sequences to a terminal.
std::string one_line(std::string_view text);

// `text` as a terminal may show it, whoever wrote it: with U+FFFD for each control character but
// newlines and tabs, and without carriage returns, which would have it written over. So it holds no
// escape sequences, which could write the clipboard or change what stands above. `before`: the byte
// in front of it, where a text comes in parts; a character may be cut between them.
std::string terminal_text(std::string_view text, char before = '\0');

}  // namespace outrider
