#include "tools/toml.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace outrider::tools {
namespace {

bool is_bare_key(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

void append_utf8(std::string& text, unsigned long code) {
  const auto put = [&text](unsigned long byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

// Digits with an optional sign, point and exponent, '_' only between digits (taken out).
std::optional<std::string> number(std::string_view word) {
  std::string text;
  bool digits = false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (c == '_') {
      if (i == 0 || i + 1 == word.size() || word[i - 1] == '_') return std::nullopt;
      continue;
    }
    const bool sign = (c == '+' || c == '-') && (i == 0 || word[i - 1] == 'e' || word[i - 1] == 'E');
    if (!digit && !sign && c != '.' && c != 'e' && c != 'E') return std::nullopt;
    digits = digits || digit;
    if (!(c == '+' && i == 0)) text += c;
  }
  if (!digits || std::count(text.begin(), text.end(), '.') > 1) return std::nullopt;
  return text;
}

// A recursive descent over one text. After the first error, error_ is set and all else is skipped.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") text_.remove_prefix(3);
  }

  TomlFile run() {
    while (error_.empty()) {
      skip(/*newlines=*/true);
      if (at_ == text_.size()) break;
      text_[at_] == '[' ? table() : key_value();
      if (error_.empty()) end_of_line();
    }
    return {std::move(entries_), std::move(error_)};
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void fail(const std::string& what) {
    if (error_.empty()) error_ = "line " + std::to_string(line_) + ": " + what;
  }

  // Blanks and comments, and ends of lines where they mean nothing.
  void skip(bool newlines) {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
      } else if (c == '\n' && newlines) {
        ++line_;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
    }
  }

  void end_of_line() {
    skip(/*newlines=*/false);
    if (at_ < text_.size() && text_[at_] != '\n') {
      fail("unexpected '" + std::string(text_.substr(at_, 1)) +
           "' behind the value; one 'key = value' a line, and texts in quotes");
    }
  }

  void table() {
    ++at_;
    if (peek() == '[') return fail("arrays of tables ([[...]]) are not options");
    skip(false);
    table_ = key();
    skip(false);
    if (!take(']')) fail("a table is written [name]");
  }

  std::string key() {
    if (peek() == '"' || peek() == '\'') return quoted();
    const std::size_t start = at_;
    while (at_ < text_.size() && is_bare_key(text_[at_])) ++at_;
    if (at_ == start) fail("expected 'key = value' or [table]");
    return std::string(text_.substr(start, at_ - start));
  }

  void key_value() {
    TomlEntry entry{.table = table_, .key = key(), .line = line_};
    skip(false);
    if (take('.')) {
      if (!table_.empty()) return fail("tables inside tables are not options");
      skip(false);
      entry.table = entry.key;
      entry.key = key();
      skip(false);
    }
    if (error_.empty() && !take('=')) fail("'" + entry.key + "' has no '='; write 'key = value'");
    skip(false);
    if (!error_.empty()) return;
    for (const TomlEntry& earlier : entries_) {
      if (earlier.key != entry.key || earlier.table != entry.table) continue;
      return fail("'" + entry.key + "' was given before, in line " + std::to_string(earlier.line));
    }
    if (take('[')) {
      array(entry.values);
    } else {
      entry.values.push_back(value());
    }
    entries_.push_back(std::move(entry));
  }

  void array(std::vector<std::string>& values) {
    for (;;) {
      skip(/*newlines=*/true);
      if (take(']') || !error_.empty()) return;
      if (peek() == '[') return fail("arrays inside arrays are not options");
      values.push_back(value());
      skip(/*newlines=*/true);
      if (take(',')) continue;
      if (!take(']')) fail("an array is written [a, b, c]");
      return;
    }
  }

  std::string value() {
    if (peek() == '"' || peek() == '\'') return quoted();
    const std::size_t start = at_;
    while (at_ < text_.size() && std::string_view(" \t\r\n,]#").find(text_[at_]) == text_.npos) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    if (word == "true" || word == "false") return std::string(word);
    const std::optional<std::string> digits = number(word);
    if (!digits) {
      fail(word.empty() ? std::string("a value is missing")
                        : std::string("'").append(word).append(
                              "' is no number, true or false; put texts in quotes"));
    }
    return digits.value_or("");
  }

  std::string quoted() {
    const char quote = text_[at_++];
    if (text_.substr(at_, 2) == std::string(2, quote)) {
      fail("multi-line strings are not read; write \\n inside \"...\"");
      return "";
    }
    std::string result;
    while (at_ < text_.size() && text_[at_] != '\n') {
      const char c = text_[at_++];
      if (c == quote) return result;
      if (c == '\\' && quote == '"') {
        escape(result);
      } else {
        result += c;
      }
    }
    fail(std::string("a string is not closed; it needs a ") + quote + " in the same line");
    return "";
  }

  void escape(std::string& result) {
    static constexpr std::string_view kLetters = "btnfre\"\\";
    static constexpr std::string_view kMeanings = "\b\t\n\f\r\x1b\"\\";
    const char c = peek();
    ++at_;
    const std::size_t known = kLetters.find(c);
    if (known != std::string_view::npos) {
      result += kMeanings[known];
      return;
    }
    const std::size_t n = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    const std::string digits(text_.substr(std::min(at_, text_.size()), n));
    const bool hex = std::all_of(digits.begin(), digits.end(), [](char d) {
      return std::isxdigit(static_cast<unsigned char>(d)) != 0;
    });
    if (n == 0 || digits.size() != n || !hex) {
      return fail("unknown escape '" + std::string{'\\', c} + "'; in '...' backslashes are plain");
    }
    at_ += n;
    const unsigned long code = std::stoul(digits, nullptr, 16);
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      return fail(std::string{'\\', c} + digits + " is no Unicode character");
    }
    append_utf8(result, code);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::string table_;
  std::vector<TomlEntry> entries_;
  std::string error_;
};

}  // namespace

TomlFile parse_toml(std::string_view text) { return Parser(text).run(); }

}  // namespace outrider::tools
