#include "llama/chat/bounded_calls.h"

#include <algorithm>
#include <string>

namespace outrider::llama {
namespace {

using jinja::value;

constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;
constexpr std::uint64_t kEntry = 64;  // bytes of a small value

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > kHuge / b ? kHuge : a * b;
}

bool is_text(const value& v) { return v != nullptr && jinja::is_val<jinja::value_string>(v); }
bool is_whole(const value& v) { return v != nullptr && jinja::is_val<jinja::value_int>(v); }
bool is_container(const value& v) {
  return v != nullptr && !(v->val_arr.empty() && v->val_obj.empty());
}

std::uint64_t count_of(const value& v) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, v->as_int()));
}

std::uint64_t bytes_of(const value& v, TemplateBudget& budget) {
  return is_container(v) ? written_size(v, budget) : own_size(v);
}

// An argument by position or by name.
value argument(std::span<const value> arguments, std::size_t at, std::string_view name) {
  for (const value& given : arguments) {
    if (!jinja::is_val<jinja::value_kwarg>(given)) continue;
    const jinja::value_kwarg_t* named = jinja::cast_val<jinja::value_kwarg>(given);
    if (named->key == name) return named->val;
  }
  return at < arguments.size() ? arguments[at] : nullptr;
}

std::uint64_t occurrences(const std::string& text, const std::string& part) {
  if (part.empty()) return text.size() + 1;
  std::uint64_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++n;
  }
  return n;
}

void check_range(std::span<const value> arguments, TemplateBudget& budget) {
  std::int64_t numbers[3] = {0, 0, 1};
  for (std::size_t i = 0; i < std::min<std::size_t>(3, arguments.size()); ++i) {
    if (!is_whole(arguments[i])) return;  // refused by the function
    numbers[i] = arguments[i]->as_int();
  }
  if (arguments.size() == 1) std::swap(numbers[0], numbers[1]);
  const double span = (static_cast<double>(numbers[1]) - static_cast<double>(numbers[0])) /
                      static_cast<double>(numbers[2] == 0 ? 1 : numbers[2]);
  const double n = std::clamp(span, 0.0, 1e18);
  budget.count(static_cast<std::uint64_t>(n));
  budget.may_make(times(static_cast<std::uint64_t>(n), kEntry));
}

// Both go through the text once, and move what is left of it at each finding.
void check_replace(const value& self, std::span<const value> arguments, TemplateBudget& budget) {
  if (self == nullptr || arguments.size() < 2) return;
  if (!is_text(arguments[0]) || !is_text(arguments[1])) return;
  if (is_container(self)) budget.may_make(written_size(self, budget));
  const std::string text = self->as_string().str();  // as the function does it
  const std::uint64_t n = occurrences(text, arguments[0]->as_string().str());
  const std::uint64_t made = text.size() + times(n, own_size(arguments[1]));
  budget.may_make(made);
  if (own_size(arguments[0]) != own_size(arguments[1])) budget.may_move(times(n, made));
}

void check_split(const value& self, std::span<const value> arguments, TemplateBudget& budget) {
  if (!is_text(self)) return;
  const std::string text = self->as_string().str();
  const std::string at = !arguments.empty() && is_text(arguments[0])
                             ? arguments[0]->as_string().str()
                             : std::string(" ");
  const std::uint64_t n = occurrences(text, at);
  budget.may_make(text.size() + times(n, kEntry));
  budget.may_move(times(n, text.size()));
}

void check_join(const value& self, std::span<const value> arguments, TemplateBudget& budget) {
  if (self == nullptr) return;
  std::uint64_t total = times(self->val_arr.size(), bytes_of(argument(arguments, 0, "d"), budget));
  for (const value& entry : self->val_arr) total += bytes_of(entry, budget);
  budget.may_make(total);
}

void check_indent(const value& self, std::span<const value> arguments, TemplateBudget& budget) {
  if (!is_text(self)) return;
  const value width = argument(arguments, 0, "width");
  const std::uint64_t by = is_whole(width) ? count_of(width) : own_size(width) + 4;
  const std::string text = self->as_string().str();
  budget.may_make(text.size() + times(occurrences(text, "\n") + 2, by));
}

void check_format(const value& self, std::span<const value> arguments, TemplateBudget& budget) {
  if (!is_text(self)) return;
  std::uint64_t most = 0;
  for (const value& given : arguments) most = std::max(most, bytes_of(given, budget));
  budget.may_make(own_size(self) + times(own_size(self) / 2, most));
}

void check_tojson(const value& self, std::span<const value> arguments, TemplateBudget& budget) {
  const std::uint64_t size = written_size(self, budget);
  const value indent = argument(arguments, 1, "indent");
  std::uint64_t between = bytes_of(argument(arguments, 2, "separators"), budget);
  if (is_whole(indent)) between += times(count_of(indent), TemplateBudget::kValueDepth);
  // An entry has 16 bytes at least in written_size; an escaped character has six.
  budget.may_make(times(size, 6) + times(size / 16, between));
}

}  // namespace

void check_call(std::string_view name, const value& self, std::span<const value> arguments,
                TemplateBudget& budget) {
  if (name == "range") return check_range(arguments, budget);
  if (name == "replace") return check_replace(self, arguments, budget);
  if (name == "split" || name == "rsplit") return check_split(self, arguments, budget);
  if (name == "join") return check_join(self, arguments, budget);
  if (name == "indent") return check_indent(self, arguments, budget);
  if (name == "format") return check_format(self, arguments, budget);
  if (name == "tojson" || (name == "string" && is_container(self))) {
    if (self != nullptr) return check_tojson(self, arguments, budget);
    if (!arguments.empty()) check_tojson(arguments[0], arguments.subspan(1), budget);
  }
}

void check_operation(std::string_view op, const value& left, const value& right,
                     TemplateBudget& budget) {
  if (op == "*") {
    if (is_text(left) && is_whole(right)) budget.may_make(times(own_size(left), count_of(right)));
    if (is_whole(left) && is_text(right)) budget.may_make(times(count_of(left), own_size(right)));
    return;
  }
  if (op != "+" && op != "~") return;
  const bool lists = is_container(left) && is_container(right);
  budget.may_make(lists ? own_size(left) + own_size(right)
                        : bytes_of(left, budget) + bytes_of(right, budget));
}

}  // namespace outrider::llama
