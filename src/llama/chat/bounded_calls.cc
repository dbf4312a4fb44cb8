#include "llama/chat/bounded_calls.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>

namespace outrider::llama {
namespace {

using jinja::value;

constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;
constexpr std::uint64_t kEntry = 64;  // bytes of a small value
// Numbers up to it can be added without leaving 64 bits; loops that do may never end.
constexpr std::int64_t kMostNumber = std::int64_t{1} << 62;
// A text that is searched for is found in a linear time where its beginning is rare.
constexpr std::size_t kBeginning = 64;

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > kHuge / b ? kHuge : a * b;
}

bool is_text(const value& v) { return v != nullptr && jinja::is_val<jinja::value_string>(v); }
bool is_whole(const value& v) { return v != nullptr && jinja::is_val<jinja::value_int>(v); }
bool is_container(const value& v) {
  return v != nullptr && !(v->val_arr.empty() && v->val_obj.empty());
}
bool is_large(std::int64_t number) { return number > kMostNumber || number < -kMostNumber; }

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

// Judges a search of `part` from each place of `text`: the places where its beginning stands are
// compared to the end.
void check_search(const std::string& text, const std::string& part, TemplateBudget& budget) {
  if (part.size() <= kBeginning) return;
  const std::string beginning = part.substr(0, kBeginning);
  std::uint64_t n = 0;
  for (std::size_t at = text.find(beginning); at != std::string::npos;
       at = text.find(beginning, at + 1)) {
    ++n;
  }
  budget.may_move(times(n, part.size()));
}

std::uint64_t occurrences(const std::string& text, const std::string& part,
                          TemplateBudget& budget) {
  if (part.empty()) return text.size() + 1;
  check_search(text, part, budget);
  std::uint64_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++n;
  }
  return n;
}

// Each repetition stays a part of its own.
void check_repeat(const value& text, std::uint64_t n, TemplateBudget& budget) {
  budget.may_make(times(n, own_size(text) + sizeof(jinja::string_part)));
}

void check_range(std::span<const value> arguments, TemplateBudget& budget) {
  std::int64_t numbers[3] = {0, 0, 1};
  for (std::size_t i = 0; i < std::min<std::size_t>(3, arguments.size()); ++i) {
    if (!arguments[i]->is_numeric()) return;  // refused by the function
    numbers[i] = arguments[i]->as_int();
  }
  if (arguments.size() == 1) std::swap(numbers[0], numbers[1]);
  const auto [start, stop, step] = numbers;
  if (step == 0 || (step > 0 ? start >= stop : start <= stop)) return;  // refused, or empty
  if (is_large(start) || is_large(stop) || is_large(step)) {
    budget.stop("it counts with numbers above 2^62");
  }
  const auto span = static_cast<std::uint64_t>(std::max(start, stop)) -
                    static_cast<std::uint64_t>(std::min(start, stop));
  const auto by = static_cast<std::uint64_t>(std::abs(step));
  const std::uint64_t n = (span - 1) / by + 1;
  budget.count(n);
  budget.may_make(times(n, kEntry));
}

// Both go through the text once, and move what is left of it at each finding.
void check_replace(const value& self, std::span<const value> arguments, TemplateBudget& budget) {
  if (self == nullptr || arguments.size() < 2) return;
  if (!is_text(arguments[0]) || !is_text(arguments[1])) return;
  if (is_container(self)) budget.may_make(written_size(self, budget));
  const std::string text = self->as_string().str();  // as the function does it
  const std::uint64_t n = occurrences(text, arguments[0]->as_string().str(), budget);
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
  const std::uint64_t n = occurrences(text, at, budget);
  budget.may_make(text.size() + times(n, kEntry));
  budget.may_move(times(n, text.size()));
}

void check_join(const value& self, std::span<const value> arguments, TemplateBudget& budget) {
  if (self == nullptr) return;
  std::uint64_t total = times(self->val_arr.size(), bytes_of(argument(arguments, 0, "d"), budget));
  for (const value& entry : self->val_arr) {
    total += bytes_of(entry, budget);
    budget.may_make(total);
  }
}

void check_indent(const value& self, std::span<const value> arguments, TemplateBudget& budget) {
  if (!is_text(self)) return;
  const value width = argument(arguments, 0, "width");
  const std::uint64_t by = is_whole(width) ? count_of(width) : own_size(width) + 4;
  const std::string text = self->as_string().str();
  budget.may_make(text.size() + times(occurrences(text, "\n", budget) + 2, by));
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
  if (is_whole(indent)) {
    const auto by = static_cast<std::int32_t>(indent->as_int());  // as the function does it
    between += times(static_cast<std::uint64_t>(std::max(by, 0)), TemplateBudget::kValueDepth);
  }
  // An entry has 16 bytes at least in written_size; an escaped character has six.
  budget.may_make(times(size, 6) + times(size / 16, between));
}

// What of an entry is compared: its attribute, or all of it.
value compared(const value& entry, const value& attribute) {
  value none = jinja::mk_val<jinja::value_undefined>();
  if (is_whole(attribute) && jinja::is_val<jinja::value_array>(entry)) {
    return entry->at(attribute->as_int(), none);
  }
  if (is_text(attribute) && jinja::is_val<jinja::value_object>(entry)) {
    return entry->at(attribute, none);
  }
  return entry;
}

// Of functions that take an attribute of each entry: looking it up reads its name.
void check_lookups(const value& self, const value& attribute, TemplateBudget& budget) {
  budget.may_move(times(self->val_arr.size(), own_size(attribute)));
}

// The texts are copied for each comparison.
void check_order(std::string_view name, const value& self, std::span<const value> arguments,
                 TemplateBudget& budget) {
  const value attribute = name == "sort" ? argument(arguments, 2, "attribute") : nullptr;
  const std::uint64_t n = self->val_arr.size() + self->val_obj.size();
  const bool sorts = name == "sort" || name == "dictsort";
  const std::uint64_t n_compared =
      sorts ? times(n, static_cast<std::uint64_t>(std::bit_width(n))) : n;
  budget.may_move(times(n_compared, own_size(attribute)));
  for (const value& entry : self->val_arr) {
    budget.may_move(times(n_compared, own_size(compared(entry, attribute))));
  }
  for (const auto& [key, entry] : self->val_obj) {
    budget.may_move(times(n_compared, std::max(own_size(key), own_size(entry))));
  }
}

void check_map(const value& self, std::span<const value> arguments, TemplateBudget& budget) {
  check_lookups(self, argument(arguments, 0, "attribute"), budget);
  const value otherwise = argument(arguments, arguments.size(), "default");
  if (otherwise == nullptr) return;
  budget.may_make(times(self->val_arr.size(), written_size(otherwise, budget)));
}

// Whether `needle` is in `haystack`, a text, or equals an entry. Counts no operations, as lists are
// looked through often, and ordinary ones are short.
void check_membership(const value& needle, const value& haystack, TemplateBudget& budget) {
  if (is_text(haystack)) {
    if (!is_text(needle) || own_size(needle) <= kBeginning) return;
    return check_search(haystack->as_string().str(), needle->as_string().str(), budget);
  }
  if (!is_container(haystack) || needle == nullptr) return;
  std::uint64_t total = times(haystack->val_arr.size(), bytes_of(needle, budget));
  budget.may_move(total);
  if (!is_text(needle)) return;
  for (const value& entry : haystack->val_arr) {
    total += own_size(entry);
    budget.may_move(total);
  }
}

// (attribute), (test, value) or (attribute, test, value).
void check_select(const value& self, std::span<const value> arguments, TemplateBudget& budget) {
  if (arguments.empty()) return;
  const value attribute = arguments.size() == 2 ? nullptr : arguments[0];
  check_lookups(self, attribute, budget);
  if (arguments.size() < 2) return;
  const value& test = arguments[arguments.size() - 2];
  const value& with = arguments.back();
  const bool looks_through = is_text(test) && test->as_string().str() == "in";
  std::uint64_t total = times(self->val_arr.size(), own_size(with));
  std::uint64_t all_with = 0;
  for (const value& other : with->val_arr) {
    all_with += kEntry + own_size(other);
    budget.may_move(all_with);
  }
  for (const value& entry : self->val_arr) {
    const value one = compared(entry, attribute);
    total += own_size(one);
    // At most; searching for each as check_membership() does would take long itself.
    if (looks_through && is_text(with)) {
      const std::uint64_t size = own_size(one);
      if (size > kBeginning) total += times(size, own_size(with));
    } else if (looks_through && is_container(with)) {
      total += times(with->val_arr.size(), bytes_of(one, budget)) + all_with;
    }
    budget.may_move(total);
  }
}

// Each character is looked for in those that are taken away.
void check_strip(const value& self, std::span<const value> arguments, TemplateBudget& budget) {
  budget.may_move(times(own_size(self), own_size(argument(arguments, 0, "chars"))));
}

// Filters that make a text of anything.
bool writes(std::string_view name) {
  for (const std::string_view one :
       {"capitalize", "lower", "strip", "trim", "title", "upper", "wordcount"}) {
    if (name == one) return true;
  }
  return false;
}

// Of lists and objects.
void check_method(std::string_view name, const value& self, std::span<const value> arguments,
                  TemplateBudget& budget) {
  // An escaped character has six.
  if (writes(name)) return budget.may_make(times(written_size(self, budget), 6));
  if (name == "sort" || name == "dictsort" || name == "min" || name == "max") {
    return check_order(name, self, arguments, budget);
  }
  if (name == "map") return check_map(self, arguments, budget);
  if (name == "select" || name == "selectattr" || name == "reject" || name == "rejectattr") {
    check_select(self, arguments, budget);
  }
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
  if (name == "slice") {
    if (arguments.size() > 2) check_slice_step(arguments[2], budget);
    return;
  }
  if (name == "tojson" || (name == "string" && is_container(self))) {
    if (self != nullptr) return check_tojson(self, arguments, budget);
    if (!arguments.empty()) check_tojson(arguments[0], arguments.subspan(1), budget);
    return;
  }
  if (is_container(self)) return check_method(name, self, arguments, budget);
  if (name.ends_with("strip") || name == "trim") check_strip(self, arguments, budget);
}

void check_operation(std::string_view op, const value& left, const value& right,
                     TemplateBudget& budget) {
  if (op == "*") {
    if (is_text(left) && is_whole(right)) check_repeat(left, count_of(right), budget);
    if (is_whole(left) && is_text(right)) check_repeat(right, count_of(left), budget);
    return;
  }
  if (op == "in" || op == "not in") return check_membership(left, right, budget);
  if (op == "==" || op == "!=") {
    const bool same_size = is_container(left) && is_container(right) &&
                           left->val_arr.size() == right->val_arr.size() &&
                           left->val_obj.size() == right->val_obj.size();
    if (same_size) budget.may_move(written_size(left, budget));
    return;
  }
  if (op != "+" && op != "~") return;
  // Lists hold what they are made of, which is judged where it is copied or written out.
  const bool lists = is_container(left) && is_container(right);
  budget.may_make(lists ? own_size(left) + own_size(right)
                        : bytes_of(left, budget) + bytes_of(right, budget));
}

void check_slice_step(const value& step, TemplateBudget& budget) {
  if (step != nullptr && step->is_numeric() && is_large(step->as_int())) {
    budget.stop("it counts with numbers above 2^62");
  }
}

}  // namespace outrider::llama
