#include "llama/schema/value_rules.h"

#include <cstdint>
#include <string_view>
#include <utility>

namespace outrider::llama {
namespace {

// Of 16 digits, as many as a double keeps.
constexpr std::uint64_t kFirstNumber = 8907123456000000;
constexpr std::size_t kDigits = 6;  // the last ones, of the rule's number
// How marks stand in a grammar, around the number of the rule.
constexpr std::string_view kString = R"("\"\\u0001)";
constexpr std::string_view kStringEnd = R"(\"")";
constexpr std::string_view kNumber = R"("8907123456)";
constexpr std::string_view kNumberEnd = R"(")";

std::string name_of(std::size_t i) { return "outrider-value-" + std::to_string(i); }

// Of the mark that `text` begins with: its size, and the number of its rule; a size of 0: none.
struct Mark {
  std::size_t size = 0;
  std::size_t rule = 0;
};

Mark mark_of(std::string_view text) {
  const bool string = text.starts_with(kString);
  if (!string && !text.starts_with(kNumber)) return {};
  const std::size_t begin = string ? kString.size() : kNumber.size();
  std::size_t end = begin;
  Mark mark;
  while (end < text.size() && end < begin + kDigits && text[end] >= '0' && text[end] <= '9') {
    mark.rule = mark.rule * 10 + static_cast<std::size_t>(text[end++] - '0');
  }
  const std::string_view close = string ? kStringEnd : kNumberEnd;
  if (end == begin || !text.substr(end).starts_with(close)) return {};
  mark.size = end + close.size();
  return mark;
}

}  // namespace

json::Json ValueRules::string_mark(std::string expression) {
  expressions_.push_back(std::move(expression));
  return {{"type", "string"}, {"const", "\x01" + std::to_string(expressions_.size() - 1)}};
}

json::Json ValueRules::number_mark(std::string expression, bool whole) {
  expressions_.push_back(std::move(expression));
  return {{"type", whole ? "integer" : "number"},
          {"const", kFirstNumber + expressions_.size() - 1}};
}

bool ValueRules::is_mark(const json::Json& constant) {
  if (constant.is_string()) return constant.get<std::string>().starts_with('\x01');
  return constant.is_number_unsigned() &&
         constant.get<std::uint64_t>() / 1000000 == kFirstNumber / 1000000;
}

std::string ValueRules::write(const std::string& gbnf) const {
  if (expressions_.empty()) return gbnf;
  std::string written;
  std::vector<bool> used(expressions_.size());
  for (std::size_t i = 0; i < gbnf.size();) {
    const Mark mark = mark_of(std::string_view(gbnf).substr(i));
    if (mark.size == 0 || mark.rule >= used.size()) {
      written += gbnf[i++];
      continue;
    }
    used[mark.rule] = true;
    written += name_of(mark.rule);
    i += mark.size;
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) written += name_of(i) + " ::= " + expressions_[i] + "\n";
  }
  return written;
}

}  // namespace outrider::llama
