#include "lab/markup.h"

#include <optional>

#include "base/utf8.h"

namespace outrider::lab {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::string valid_utf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::optional<std::size_t> bad = first_invalid_utf8(text);
    result += text.substr(0, bad.value_or(text.size()));
    if (!bad) break;
    result += kReplacement;
    text.remove_prefix(*bad + 1);
  }
  return result;
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string result;
  for (const char c : valid_utf8(text)) {
    const bool control = static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n';
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        if (control) {
          result += kReplacement;
        } else {
          result += c;
        }
    }
  }
  return result;
}

}  // namespace outrider::lab
