#include "base/wrap.h"

#include <sstream>

namespace outrider {

std::string wrap(const std::string& text, std::size_t indent, std::size_t width) {
  const std::string next_line = "\n" + std::string(indent, ' ');
  std::string result;
  std::istringstream lines(text);
  std::string line;
  for (bool first_line = true; std::getline(lines, line); first_line = false) {
    if (!first_line) result += next_line;
    std::size_t column = indent;
    std::istringstream words(line);
    std::string word;
    for (bool first = true; words >> word; first = false) {
      if (!first && column + 1 + word.size() > width) {
        result += next_line;
        column = indent;
      } else if (!first) {
        result += " ";
        ++column;
      }
      result += word;
      column += word.size();
    }
  }
  return result;
}

}  // namespace outrider
