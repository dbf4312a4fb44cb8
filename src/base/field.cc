#include "base/field.h"

#include <array>
#include <charconv>
#include <cmath>

namespace outrider {
namespace {

template <typename Number>
std::string shortest_text(Number value) {
  std::array<char, 32> text{};
  const std::to_chars_result end = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), end.ptr);
}

// A whole one as people write it: 100000, not 1e+05.
std::string number_text(double value) {
  return is_whole(value) ? std::to_string(static_cast<std::int64_t>(value)) : shortest(value);
}

std::string whole_text(double value) { return std::to_string(whole_limit(value)); }

// "from 1 to 64"; empty where the range says nothing that help would not.
std::string range_hint(const Range& range) {
  const bool has_max = range.max < static_cast<double>(kMaxInt32);
  if (has_max && range.min > -kNoLimit) {
    return range.above_min ? "above " + number_text(range.min) + " to " + number_text(range.max)
                           : number_text(range.min) + " to " + number_text(range.max);
  }
  if (has_max || range.min < 0.0) return "";
  return (range.above_min ? "above " : "at least ") + number_text(range.min);
}

}  // namespace

std::string shortest(float value) { return shortest_text(value); }
std::string shortest(double value) { return shortest_text(value); }

bool is_whole(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  return std::fabs(value) <= kExact && std::trunc(value) == value;
}

std::int64_t whole_limit(double value) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (value >= static_cast<double>(kMax)) return kMax;
  return value <= -static_cast<double>(kMax) ? std::numeric_limits<std::int64_t>::min()
                                             : static_cast<std::int64_t>(value);
}

std::string help_text(std::string_view help, std::string_view type, const Range& range,
                      const Off& off, std::size_t most) {
  std::string text(help);
  const std::string hint = off_text(off, range);
  if (!hint.empty()) text += "; " + hint;
  if (most > 0) text += "; at most " + std::to_string(most);
  const std::string limits = range_hint(range);
  if (limits.empty()) return text;
  return text + (type == "string | array" ? "; " + limits + " bytes each" : " (" + limits + ")");
}

bool Range::contains(double value) const {
  return std::isfinite(value) && (above_min ? value > min : value >= min) && value <= max;
}

bool Off::covers(double number) const {
  switch (where) {
    case Where::kNowhere:
      return false;
    case Where::kAt:
      return number == value;
    case Where::kFrom:
      return number >= value;
    case Where::kUpTo:
      return number <= value;
  }
  return false;
}

std::string range_text(const Range& range) {
  const bool has_min = range.min > -kNoLimit;
  const bool has_max = range.max < kNoLimit;
  if (!has_min && !has_max) return "a finite number";
  const std::string low = (range.above_min ? "above " : "at least ") + number_text(range.min);
  if (!has_max) return "a finite number " + (range.above_min ? low : "of " + low);
  if (!has_min) return "at most " + number_text(range.max);
  return range.above_min ? low + " and at most " + number_text(range.max)
                         : "from " + number_text(range.min) + " to " + number_text(range.max);
}

std::string whole_range_text(const Range& range) {
  return "a whole number from " + whole_text(range.min) + " to " + whole_text(range.max);
}

std::string off_text(const Off& off, const Range& range) {
  if (off.where == Off::Where::kNowhere) return "";
  const std::string value = number_text(off.value);
  const bool at_edge = off.where == Off::Where::kAt ||
                       (off.where == Off::Where::kFrom && off.value >= range.max) ||
                       (off.where == Off::Where::kUpTo && off.value <= range.min);
  const char* beyond = off.where == Off::Where::kFrom ? " or more" : " or less";
  return value + (at_edge ? "" : beyond) + " switches it off";
}

Status out_of_range(std::string_view name, double value, const Range& range, const Off& off,
                    bool whole) {
  std::string wanted = whole ? whole_range_text(range) : range_text(range);
  const std::string hint = off_text(off, range);
  if (!hint.empty()) wanted += " (" + hint + ")";
  return wrong_value(std::string(name),
                     whole ? whole_text(value) : shortest(static_cast<float>(value)), wanted);
}

Status check_texts(std::string_view name, const std::vector<std::string>& texts, const Range& range,
                   std::size_t most) {
  if (most > 0 && texts.size() > most) {
    return refused(std::string(name), "holds " + std::to_string(texts.size()) + " texts, at most " +
                                          std::to_string(most) + " can be");
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (range.contains(static_cast<double>(texts[i].size()))) continue;
    const std::string bytes = range.max < kNoLimit
                                  ? whole_text(range.min) + " to " + whole_text(range.max)
                                  : "at least " + whole_text(range.min);
    return refused(std::string(name) + "[" + std::to_string(i) + "]",
                   "has " + std::to_string(texts[i].size()) + " bytes, but must have " + bytes);
  }
  return Status();
}

}  // namespace outrider
