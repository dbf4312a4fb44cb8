#include "tools/options/shell_word.h"

namespace outrider::tools {

std::string shell_word(std::string_view argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=+@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(argument);
  }
  std::string word = "'";
  for (const char c : argument) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace outrider::tools
