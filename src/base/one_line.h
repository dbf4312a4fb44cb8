// Texts that were made elsewhere, in lines of our own.
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// `text` without newlines and other control characters (they become spaces), so that a message
// stays one line and no file name can write escape sequences to a terminal.
inline std::string one_line(std::string_view text) {
  std::string line(text);
  while (!line.empty() && line.back() == '\n') line.pop_back();
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return line;
}

}  // namespace outrider
