#include "llama/schema/pattern.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "llama/schema/character_set.h"

namespace outrider::llama {
namespace {

constexpr int kMaxDepth = 100;      // of groups
constexpr int kMaxRepeated = 2000;  // llama.cpp's most repetitions
constexpr std::uint32_t kEnd = 0xFFFFFFFF;
// What a JSON string can hold between its quotation marks.
constexpr std::string_view kAnyText =
    R"(([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))*)";

CharacterSet digits() { return CharacterSet({{'0', '9'}}); }
CharacterSet word_characters() {
  return CharacterSet({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}});
}
// ECMA-262's WhiteSpace and LineTerminator.
CharacterSet spaces() {
  return CharacterSet({{'\t', '\r'},
                       {' ', ' '},
                       {0xA0, 0xA0},
                       {0x1680, 0x1680},
                       {0x2000, 0x200A},
                       {0x2028, 0x2029},
                       {0x202F, 0x202F},
                       {0x205F, 0x205F},
                       {0x3000, 0x3000},
                       {0xFEFF, 0xFEFF}});
}
CharacterSet line_ends() { return CharacterSet({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}); }

// Reads a pattern from its beginning, and writes each part as it has been read. The first error
// stays; what is read behind it does not matter.
class PatternReader {
 public:
  // REQUIRES: UTF-8
  explicit PatternReader(std::string_view pattern) : rest_(pattern) {}

  Result<std::string> read() {
    std::string all = alternatives(/*depth=*/0);
    if (error_.empty() && !rest_.empty()) fail("a ')' that closes nothing");
    if (!error_.empty()) return invalid_argument(error_);
    return R"("\"" )" + all + R"( "\"")";
  }

 private:
  void fail(const std::string& why) {
    if (error_.empty()) error_ = why;
    rest_ = {};
  }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  // kEnd: there is none.
  std::uint32_t take_character() {
    if (rest_.empty()) return kEnd;
    const unsigned char lead = static_cast<unsigned char>(rest_[0]);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t code = size == 1 ? lead : lead & (0xFFU >> (size + 1));
    for (std::size_t i = 1; i < size; ++i) {
      code = code << 6 | (static_cast<unsigned char>(rest_[i]) & 0x3FU);
    }
    rest_.remove_prefix(size);
    return code;
  }

  // Up to a ')' or the end. Anchors hold in the outermost ones only, where they are read.
  std::string alternatives(int depth) {
    std::string all;
    do {
      all += (all.empty() ? "" : " | ") + alternative(depth);
    } while (take("|"));
    return "(" + all + ")";
  }

  std::string alternative(int depth) {
    const bool outermost = depth == 0;
    const bool begins = outermost && take("^");
    std::string sequence = outermost && !begins ? std::string(kAnyText) : "";
    bool ends = false;
    while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') {
      if (outermost && rest_[0] == '$' && (rest_.size() == 1 || rest_[1] == '|')) {
        rest_.remove_prefix(1);
        ends = true;
        break;
      }
      const std::string part = term(depth);
      sequence += (sequence.empty() ? "" : " ") + part;
    }
    if (outermost && !ends) sequence += (sequence.empty() ? "" : " ") + std::string(kAnyText);
    return sequence.empty() ? R"("")" : sequence;
  }

  // A character, class or group, and how often.
  std::string term(int depth) {
    std::string part;
    if (take("(")) {
      part = group(depth + 1);
    } else if (take("[")) {
      part = written(character_class());
    } else if (take(".")) {
      part = written(line_ends().complement());
    } else if (take("\\")) {
      part = written(escaped(/*in_class=*/false));
    } else {
      const std::uint32_t character = take_character();
      if (character == '^' || character == '$') fail("an anchor inside");
      if (character == '*' || character == '+' || character == '?') fail("nothing to repeat");
      part = written(CharacterSet({{character, character}}));
    }
    return part + repetition();
  }

  std::string written(const CharacterSet& set) {
    std::string text = set.in_json_string();
    if (text.empty() && error_.empty()) fail("a class without a character that JSON can write");
    return text;
  }

  std::string group(int depth) {
    if (depth > kMaxDepth) {
      fail("groups more than " + std::to_string(kMaxDepth) + " deep");
      return "";
    }
    const bool named = rest_.starts_with("?<") && !rest_.starts_with("?<=") &&
                       !rest_.starts_with("?<!") && rest_.find('>') != std::string_view::npos;
    if (named) {
      rest_.remove_prefix(rest_.find('>') + 1);
    } else if (!take("?:") && rest_.starts_with('?')) {
      fail("look-around or flags, '(" + std::string(rest_.substr(0, 2)) + "'");
    }
    std::string all = alternatives(depth);
    if (error_.empty() && !take(")")) fail("a '(' that is not closed");
    return all;
  }

  std::string repetition() {
    const std::string how_often = take("*") ? "*" : take("+") ? "+" : take("?") ? "?" : counts();
    if (how_often.empty()) return "";
    take("?");  // lazy: of the same texts the shortest first
    const bool again = rest_.starts_with('*') || rest_.starts_with('+') || rest_.starts_with('?') ||
                       !counts().empty();
    if (again) fail("nothing to repeat");
    return how_often;
  }

  // {n}, {n,}, {n,m}; empty: what follows is not one of them, and a brace is a character.
  std::string counts() {
    const std::size_t end = rest_.find('}');
    if (!rest_.starts_with('{') || end == std::string_view::npos) return "";
    const std::string_view inside = rest_.substr(1, end - 1);
    const std::size_t comma = std::min(inside.find(','), inside.size());
    const std::optional<int> least = number(inside.substr(0, comma));
    if (!least) return "";
    std::string text = "{" + std::to_string(*least);
    int most = *least;
    if (comma < inside.size()) {
      text += ",";
      const std::string_view second = inside.substr(comma + 1);
      const std::optional<int> given = number(second);
      if (!given && !second.empty()) return "";
      if (given) text += std::to_string(*given);
      most = given.value_or(most);
    }
    if (most > kMaxRepeated) fail("more than " + std::to_string(kMaxRepeated) + " repetitions");
    if (most < *least) fail("a least number of repetitions above the most");
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return text + "}";
  }

  static std::optional<int> number(std::string_view text) {
    if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return {};
    int value = 0;
    const std::from_chars_result read =
        std::from_chars(text.data(), text.data() + text.size(), value);
    return read.ec == std::errc() ? value : kMaxRepeated + 1;
  }

  // Behind the '['.
  CharacterSet character_class() {
    CharacterSet set;
    const bool negated = take("^");
    while (!rest_.empty() && !rest_.starts_with(']')) {
      std::optional<std::uint32_t> first = class_item(set);
      const bool range = first && rest_.starts_with('-') && !rest_.starts_with("-]");
      if (!range) {
        if (first) set.add(*first, *first);
        continue;
      }
      rest_.remove_prefix(1);
      const std::optional<std::uint32_t> last = class_item(set);
      if (!last || *last < *first) {
        fail("a range in a class from above to below");
      } else {
        set.add(*first, *last);
      }
    }
    if (error_.empty() && !take("]")) fail("a '[' that is not closed");
    return negated ? set.complement() : set;
  }

  // A character; nothing where it is a set such as \d, which has been added.
  std::optional<std::uint32_t> class_item(CharacterSet& set) {
    if (!take("\\")) return take_character();
    const bool is_set =
        !rest_.empty() && std::string_view("dDwWsS").find(rest_[0]) != std::string_view::npos;
    const CharacterSet given = escaped(/*in_class=*/true);
    if (is_set) {
      set.add(given);
      return std::nullopt;
    }
    return escaped_character_;
  }

  // Behind the backslash.
  CharacterSet escaped(bool in_class) {
    const std::uint32_t c = take_character();
    switch (c) {
      case 'd':
        return digits();
      case 'D':
        return digits().complement();
      case 'w':
        return word_characters();
      case 'W':
        return word_characters().complement();
      case 's':
        return spaces();
      case 'S':
        return spaces().complement();
      default:
        break;
    }
    const std::uint32_t character = escaped_code(c, in_class);
    escaped_character_ = character;
    return CharacterSet({{character, character}});
  }

  std::uint32_t escaped_code(std::uint32_t c, bool in_class) {
    switch (c) {
      case 't':
        return '\t';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case '0':
        return 0;
      case 'x':
        return hexadecimal(2);
      case 'u':
        return hexadecimal(4);
      case 'b':
        if (in_class) return '\b';
        break;
      case kEnd:
        break;
      default: {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool digit = c >= '1' && c <= '9';
        if (!letter && !digit) return c;
      }
    }
    fail(c == kEnd ? "a '\\' at the end"
                   : std::string("'\\") + static_cast<char>(c) + "', which is not kept to");
    return 0;
  }

  std::uint32_t hexadecimal(std::size_t n_digits) {
    std::uint32_t code = 0;
    const std::string_view text = rest_.substr(0, n_digits);
    const std::from_chars_result read =
        std::from_chars(text.data(), text.data() + text.size(), code, 16);
    if (text.size() < n_digits || read.ptr != text.data() + text.size()) {
      fail("\\x and \\u need two and four hexadecimal digits");
      return 0;
    }
    rest_.remove_prefix(n_digits);
    return code;
  }

  std::string_view rest_;
  std::string error_;
  std::uint32_t escaped_character_ = 0;  // the one that escaped() read last
};

}  // namespace

Result<std::string> pattern_expression(std::string_view pattern) {
  return PatternReader(pattern).read();
}

}  // namespace outrider::llama
