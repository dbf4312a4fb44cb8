#include "json/valid_strings.h"

#include <algorithm>
#include <cstddef>

namespace outrider::json {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::string_view kReplacement = "\\ufffd";
constexpr std::size_t kUnit = 6;  // bytes of "\ud83d"

bool is_hex(char c) { return kHexDigits.find(c) != std::string_view::npos; }

// Whether `text` is the second half of a pair, or so far the beginning of one.
bool may_be_second_half(std::string_view text) {
  constexpr std::string_view kAllowed[] = {"\\", "u", "dD", "cdefCDEF", kHexDigits, kHexDigits};
  for (std::size_t i = 0; i < std::min(text.size(), kUnit); ++i) {
    if (kAllowed[i].find(text[i]) == std::string_view::npos) return false;
  }
  return true;
}

// What an escape becomes, and how much of the text that is; nothing: its end is not there yet.
struct Escape {
  std::string_view valid;
  std::size_t length = 0;
};

// `text` begins with "\u".
Escape read_unit(std::string_view text) {
  for (std::size_t i = 2; i < kUnit; ++i) {
    if (i == text.size()) return {};
    if (!is_hex(text[i])) return {.valid = "", .length = 1};
  }
  const bool in_d = text[2] == 'd' || text[2] == 'D';
  const bool surrogate = in_d && std::string_view("01234567").find(text[3]) == text.npos;
  if (!surrogate) return {.valid = text.substr(0, kUnit), .length = kUnit};
  if (may_be_second_half(text)) return {.valid = kReplacement, .length = kUnit};
  const std::string_view behind = text.substr(kUnit);
  if (!may_be_second_half(behind)) return {.valid = kReplacement, .length = kUnit};
  if (behind.size() < kUnit) return {};
  return {.valid = text.substr(0, 2 * kUnit), .length = 2 * kUnit};
}

// `text` begins with a backslash in a string.
Escape read_escape(std::string_view text) {
  constexpr std::string_view kOneLetter = "\"\\/bfnrt";
  if (text.size() < 2) return {};
  if (text[1] == 'u') return read_unit(text);
  const bool known = kOneLetter.find(text[1]) != std::string_view::npos;
  return known ? Escape{.valid = text.substr(0, 2), .length = 2} : Escape{.valid = "", .length = 1};
}

void add_control(char c, std::string& text) {
  constexpr std::string_view kNamed = "\b\f\n\r\t";
  constexpr std::string_view kLetters = "bfnrt";
  const std::size_t named = kNamed.find(c);
  text += '\\';
  if (named != std::string_view::npos) {
    text += kLetters[named];
    return;
  }
  text += c < 0x10 ? "u000" : "u001";
  text += kHexDigits[static_cast<std::size_t>(c) % 16];
}

}  // namespace

std::string valid_strings(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  bool in_string = false;
  while (!text.empty()) {
    const char c = text.front();
    std::size_t length = 1;
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') {
      const Escape escape = read_escape(text);
      if (escape.length == 0) break;
      valid += escape.valid;
      length = escape.length;
    } else if (in_string && static_cast<unsigned char>(c) < 0x20) {
      add_control(c, valid);
    } else {
      valid += c;
    }
    text.remove_prefix(length);
  }
  return valid;
}

std::string whole_surrogates(std::string_view text) {
  std::string whole(text);
  bool in_string = false;
  std::size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (!in_string || c != '\\') {
      ++i;
      continue;
    }
    const Escape escape = read_escape(text.substr(i));
    if (escape.length < kUnit) {  // another escape, or none: both characters stay
      i += 2;
      continue;
    }
    whole.replace(i, escape.length, escape.valid);
    i += escape.length;
  }
  return whole;
}

}  // namespace outrider::json
