#include "json/json.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "json/valid_strings.h"

namespace outrider::json {
namespace {

// The last bytes of what may be as long as the text itself.
std::string shortened(std::string_view part) {
  constexpr std::size_t kMost = 48;
  if (part.size() <= kMost) return std::string(part);
  part.remove_prefix(part.size() - kMost);
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  while (!part.empty() && continues(part.front())) part.remove_prefix(1);  // a character's rest
  return "..." + std::string(part);
}

// Reads a text without making anything of it, to find what JSON allows and we do not. Two fields of
// one name mean different things to different readers, so they are refused; and Json looks for a
// field from the first one on, so that very many of them would take their square in time (100,000:
// 20 s). In a reading of its own, since a callback of Json::parse() makes the library go through
// all of an array at the end of each object in it (160,000: 36 s).
class FieldCheck : public Json::json_sax_t {
 public:
  explicit FieldCheck(bool twice_allowed) : twice_allowed_(twice_allowed) {}

  // What is refused; empty: nothing up to the text's end, or to where it is no JSON.
  const std::string& refused() const { return refused_; }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(Json::number_integer_t /*value*/) override { return true; }
  bool number_unsigned(Json::number_unsigned_t /*value*/) override { return true; }
  bool number_float(Json::number_float_t /*value*/, const std::string& /*text*/) override {
    return true;
  }
  bool string(std::string& /*value*/) override { return true; }
  bool binary(Json::binary_t& /*value*/) override { return true; }
  bool start_array(std::size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool start_object(std::size_t /*size*/) override {
    names_.emplace_back();
    return true;
  }
  bool end_object() override {
    names_.pop_back();
    return true;
  }
  bool key(std::string& name) override {
    if (names_.back().size() >= kMaxFields) {
      refused_ = "an object has more than " + std::to_string(kMaxFields) + " fields";
    } else if (!names_.back().insert(name).second && !twice_allowed_) {
      refused_ = "the field '" + shortened(name) + "' is there twice in one object";
    }
    return refused_.empty();
  }
  bool parse_error(std::size_t /*place*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  const bool twice_allowed_;                  // two fields of one name in an object
  std::vector<std::set<std::string>> names_;  // of each object around the place, outermost first
  std::string refused_;
};

std::string place(std::string_view text, std::size_t offset, std::size_t first_line) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const std::size_t line =
      first_line + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  return "line " + std::to_string(line) + ", column " +
         std::to_string(before.size() - line_start + 1) + ": ";
}

// nlohmann writes "[json.exception.parse_error.101] parse error at line 1, column 3: syntax error
// while parsing value - invalid literal; last read: 'tx'"; the place is ours.
std::string reason(std::string_view what) {
  if (what.find("number overflow") != std::string_view::npos) {
    return "not valid JSON: a number is too large";
  }
  std::size_t start = 0;
  for (const std::string_view mark : {"syntax error while parsing ", "parse error"}) {
    const std::size_t at = what.find(mark);
    if (at == std::string_view::npos) continue;
    start = mark.front() == 's' ? at : what.find(": ", at) + 2;
    break;
  }
  what.remove_prefix(start);
  // All of the string or number that was being read; behind it stands what was expected, if known.
  constexpr std::string_view kToken = "last read: '";
  const std::size_t token = what.find(kToken);
  const std::size_t end = what.rfind('\'');
  if (token == std::string_view::npos || end < token + kToken.size()) {
    return "not valid JSON: " + std::string(what);
  }
  const std::size_t from = token + kToken.size();
  return "not valid JSON: " + std::string(what.substr(0, from)) +
         shortened(what.substr(from, end - from)) + std::string(what.substr(end));
}

// The first bracket or brace outside of strings for which `is_it` is true, each asked in order;
// npos: there is none.
template <class IsIt>
std::size_t find_bracket(std::string_view text, IsIt is_it) {
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if ((c == '[' || c == '{' || c == ']' || c == '}') && is_it(c)) {
      return i;
    }
  }
  return std::string_view::npos;
}

// `number`: of the line that the text is, in a file of lines; 0: it is a whole. `twice_allowed`: of
// two fields of one name the last one counts.
Parsed parse_at(std::string_view text, std::size_t number, bool twice_allowed = false) {
  const std::size_t first_line = std::max<std::size_t>(number, 1);
  const std::size_t deep = too_deep(text);
  if (deep != std::string_view::npos) {
    return {.value = std::nullopt,
            .error = place(text, deep, first_line) + "nested deeper than " +
                     std::to_string(kMaxDepth) + " levels"};
  }
  try {
    FieldCheck check(twice_allowed);
    static_cast<void>(Json::sax_parse(text, &check));
    if (!check.refused().empty()) {
      // Where in the text, the library does not say.
      const std::string line = number == 0 ? "" : "line " + std::to_string(number) + ": ";
      return {.value = std::nullopt, .error = line + check.refused()};
    }
    Json value = Json::parse(text);
    const std::size_t nul = text.find('\0');  // the library takes it for the end
    if (nul == std::string_view::npos) return {.value = std::move(value), .error = ""};
    return {.value = std::nullopt,
            .error = place(text, nul, first_line) + "not valid JSON: a NUL byte"};
  } catch (const Json::parse_error& error) {
    // `byte` counts from 1 and names the last byte read.
    const std::size_t offset = error.byte == 0 ? 0 : error.byte - 1;
    return {.value = std::nullopt, .error = place(text, offset, first_line) + reason(error.what())};
  } catch (const Json::exception& error) {  // a number out of range
    return {.value = std::nullopt, .error = place(text, 0, first_line) + reason(error.what())};
  }
}

}  // namespace

std::size_t too_deep(std::string_view text) {
  std::size_t depth = 0;
  return find_bracket(text, [&depth](char c) {
    if (c == '[' || c == '{') return ++depth > kMaxDepth;
    if (depth > 0) --depth;
    return false;
  });
}

std::size_t object_length(std::string_view text) {
  int depth = 0;
  const std::size_t end = find_bracket(text, [&depth](char c) {
    if (c == '{') ++depth;
    return c == '}' && --depth == 0;
  });
  return end == std::string_view::npos ? 0 : end + 1;
}

std::string encode(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Parsed parse(std::string_view text) { return parse_at(text, 0); }

Parsed parse_sent(std::string_view text) {
  Parsed parsed = parse(text);
  if (parsed.ok()) return parsed;
  const std::string whole = whole_surrogates(text);
  return whole == text ? parsed : parse(whole);
}

Parsed parse_written(std::string_view text) {
  Parsed parsed = parse(text);
  if (!parsed.ok()) parsed = parse_at(valid_strings(text), 0, /*twice_allowed=*/true);
  return parsed;
}

std::string parse_lines(
    std::string_view text,
    const std::function<std::string(const Json& value, std::size_t line)>& on_line) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  std::size_t start = 0;
  for (std::size_t number = 1; start < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line = text.substr(start, end - start);
    start = end + 1;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    const Parsed parsed = parse_at(line, number);
    if (!parsed.ok()) return parsed.error;
    const std::string complaint = on_line(*parsed.value, number);
    if (!complaint.empty()) return "line " + std::to_string(number) + ": " + complaint;
  }
  return "";
}

std::string_view kind(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "true or false";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return "a number";
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return "nothing";
}

}  // namespace outrider::json
