// Bytes as a text that can be read aloud: "\x1b".
#pragma once

#include <string>

namespace outrider {

// Appends "\x" and two digits.
inline void append_escaped(std::string& text, unsigned char byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  text += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 15U]};
}

}  // namespace outrider
