#include "tools/options/toml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#define TOML_EXCEPTIONS 0
// toml++ takes for granted what a file may not keep to: "[?]" breaks an assertion of its, or, where
// assertions are off, an assumption that it makes to the compiler. The code behind it reports an
// error. (Found by fuzzing; fuzz/corpus/toml.)
#include <toml++/impl/preprocessor.h>
#undef TOML_ASSERT
#define TOML_ASSERT(condition) static_assert(true)
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(condition) static_assert(true)
#include <toml++/toml.h>

namespace outrider::tools {
namespace {

template <typename Number>
std::string number_text(Number number) {
  std::array<char, 32> text;
  const std::to_chars_result end = std::to_chars(text.data(), text.data() + text.size(), number);
  return std::string(text.data(), end.ptr);
}

// The text of a string, number or boolean; nothing for other kinds.
std::optional<std::string> scalar_text(const toml::node& node) {
  if (const toml::value<std::string>* value = node.as_string()) return value->get();
  if (const toml::value<std::int64_t>* value = node.as_integer()) return number_text(value->get());
  if (const toml::value<double>* value = node.as_floating_point()) return number_text(value->get());
  if (const toml::value<bool>* value = node.as_boolean()) return value->get() ? "true" : "false";
  return std::nullopt;
}

Status at_line(const toml::source_region& source, std::string_view what) {
  return invalid_argument("line " + std::to_string(source.begin.line) + ": " + std::string(what));
}

// The entry of a value or an array of values; an error for what fits no option.
Status read_entry(const std::string& table, const std::string& key, const toml::node& node,
                  TomlFile& file) {
  TomlEntry entry{.table = table, .key = key, .values = {}, .line = node.source().begin.line};
  const toml::array* array = node.as_array();
  const std::size_t n = array == nullptr ? 1 : array->size();
  for (std::size_t i = 0; i < n; ++i) {
    const toml::node& value = array == nullptr ? node : *array->get(i);
    const std::optional<std::string> text = scalar_text(value);
    if (!text) {
      return at_line(value.source(), "'" + key +
                                         "' takes a text in quotes, a number, true, false, or an "
                                         "array of these");
    }
    entry.values.push_back(*text);
  }
  file.entries.push_back(std::move(entry));
  return Status();
}

Status read_table(const std::string& name, const toml::table& table, TomlFile& file) {
  for (const auto& [key, node] : table) {
    const toml::table* inner = node.as_table();
    if (inner != nullptr && name.empty()) {
      OUTRIDER_RETURN_IF_ERROR(read_table(std::string(key.str()), *inner, file));
    } else if (inner != nullptr && name == kModelTables) {
      file.models.push_back({std::string(key.str()), inner->source().begin.line});
      OUTRIDER_RETURN_IF_ERROR(read_table(name + "." + std::string(key.str()), *inner, file));
    } else {
      OUTRIDER_RETURN_IF_ERROR(read_entry(name, std::string(key.str()), node, file));
    }
  }
  return Status();
}

}  // namespace

Result<TomlFile> parse_toml(std::string_view text) {
  const toml::parse_result parsed = toml::parse(text);
  if (parsed.failed()) return at_line(parsed.error().source(), parsed.error().description());
  TomlFile file;
  OUTRIDER_RETURN_IF_ERROR(read_table("", parsed.table(), file));
  // toml++ sorts by key. No two values share a line and a key, so lines bring the order back, but
  // for several on one line in an inline table.
  std::ranges::stable_sort(file.entries, {}, &TomlEntry::line);
  std::ranges::stable_sort(file.models, {}, &TomlModel::line);
  return file;
}

}  // namespace outrider::tools
