// For tests: an expression of a GBNF grammar that names no other rules, as a std::regex.
#pragma once

#include <string>
#include <string_view>

namespace outrider::llama {

// For texts of ASCII without DEL, which stands for all that is beyond.
inline std::string as_regex(std::string_view gbnf) {
  std::string regex;
  bool in_literal = false;
  bool in_class = false;
  for (std::size_t i = 0; i < gbnf.size(); ++i) {
    const char c = gbnf[i];
    if (in_class && c == '\\' && (gbnf[i + 1] == 'x' || gbnf[i + 1] == 'U')) {
      const std::size_t n_digits = gbnf[i + 1] == 'x' ? 2 : 8;
      const std::string digits(gbnf.substr(i + 2, n_digits));
      regex += "\\x" + (std::stoul(digits, nullptr, 16) > 0x7F ? "7F" : digits);
      i += 1 + n_digits;
    } else if (in_class) {
      regex += c;
      if (c == '\\') regex += gbnf[++i];
      in_class = c != ']';
    } else if (c == '"') {
      regex += in_literal ? ")" : "(?:";  // what repeats it repeats all of it
      in_literal = !in_literal;
    } else if (in_literal) {
      const char said = c == '\\' ? gbnf[++i] : c;
      if (std::string_view(R"(\^$.*+?()[]{}|)").find(said) != std::string_view::npos) regex += '\\';
      regex += said;
    } else if (c == '[') {
      in_class = true;
      regex += c;
    } else if (c == '(') {
      regex += "(?:";
    } else if (c != ' ') {
      regex += c;
    }
  }
  return regex;
}

}  // namespace outrider::llama
