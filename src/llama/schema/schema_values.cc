#include "llama/schema/schema_values.h"

#include <optional>
#include <string>
#include <utility>

#include "llama/schema/number_range.h"
#include "llama/schema/pattern.h"
#include "llama/schema/schema_words.h"

namespace outrider::llama {
namespace {

using json::Json;

constexpr int kMaxPatterns = 100;
constexpr std::size_t kMaxPattern = 1000;  // bytes
constexpr const char* kNumberWords[] = {"minimum", "maximum", "exclusiveMinimum",
                                        "exclusiveMaximum", "multipleOf"};

bool has_number_words(const Json& node) {
  for (const char* word : kNumberWords) {
    if (node.contains(word)) return true;
  }
  return false;
}

// The tighter one of a bound and an exclusive bound. An exclusive bound that is true or false, as
// schemas before draft 6 have it, is about the other one.
Status read_bound(const Json& node, const char* key, const char* exclusive_key, bool least,
                  std::optional<NumberRange::Bound>& bound) {
  for (const char* word : {key, exclusive_key}) {
    const bool exclusive = word == exclusive_key;
    if (!node.contains(word)) continue;
    const Json& value = node[word];
    if (exclusive && value.is_boolean()) {
      if (bound && value == true) bound->exclusive = true;
      continue;
    }
    if (!value.is_number()) return invalid_argument(std::string(word) + " must be a number");
    if (bound) {
      const double other = node[key].get<double>();
      const double mine = value.get<double>();
      if (least ? mine < other : mine > other) continue;
    }
    bound = NumberRange::Bound{.number = value.dump(), .exclusive = exclusive};
  }
  return Status();
}

// Of a multiple of 1, 0.1, 0.01, ...; nothing for other multiples.
std::optional<int> decimals_of_multiple(const Json& multiple) {
  if (!multiple.is_number()) return std::nullopt;
  double unit = 1;
  for (int decimals = 0; decimals <= 10; ++decimals, unit *= 10) {
    if (multiple.get<double>() == 1 / unit) return decimals;
  }
  return std::nullopt;
}

}  // namespace

bool has_value_words(const Json& node) {
  return node.contains("pattern") || has_number_words(node);
}

void take_value_words_out(Json& node) {
  node.erase("pattern");
  for (const char* word : kNumberWords) node.erase(word);
}

void split_types(Json& node) {
  if (!node.contains("type") || !node["type"].is_array() || !has_value_words(node)) return;
  if (alone_word(node) != nullptr) return;
  Json alternatives = Json::array();
  for (const Json& type : node["type"]) {
    Json alternative = {{"type", type}};
    for (const auto& [key, value] : node.items()) {
      if (is_known_of(key, type.get<std::string>())) alternative[key] = value;
    }
    alternatives.push_back(std::move(alternative));
  }
  Json split = Json::object();
  for (const auto& [key, value] : node.items()) {
    if (is_annotation(key)) split[key] = value;
  }
  split["anyOf"] = std::move(alternatives);
  node = std::move(split);
}

Status SchemaValues::write(Json& node, bool loose) {
  if (alone_word(node) != nullptr) return Status();
  const std::string type =
      node.contains("type") && node["type"].is_string() ? node["type"].get<std::string>() : "";
  if (node.contains("pattern") && (type.empty() || type == "string")) {
    return write_string(node, loose);
  }
  // Without a type only what is a number is held to the bounds: a number is what is meant.
  const bool number = type.empty() || type == "number" || type == "integer";
  return number && has_number_words(node) ? write_number(node, loose) : Status();
}

Status SchemaValues::write_string(Json& node, bool loose) {
  if (!loose && (node.contains("minLength") || node.contains("maxLength"))) {
    return invalid_argument("a length cannot be kept to beside a pattern; say it in the pattern");
  }
  if (!node["pattern"].is_string()) return invalid_argument("pattern must be a text");
  const std::string pattern = node["pattern"].get<std::string>();
  if (pattern.size() > kMaxPattern) {
    return invalid_argument("the pattern has more than " + std::to_string(kMaxPattern) + " bytes");
  }
  if (++n_patterns_ > kMaxPatterns) {
    return invalid_argument("there are more than " + std::to_string(kMaxPatterns) + " patterns");
  }
  Result<std::string> expression = pattern_expression(pattern);
  if (!expression.ok()) {
    return invalid_argument("the pattern '" + pattern +
                            "' cannot be kept to: " + expression.status().message());
  }
  node = rules_.string_mark(std::move(*expression));
  return Status();
}

Status SchemaValues::write_number(Json& node, bool loose) {
  const bool integer = node.contains("type") && node["type"] == "integer";
  NumberRange range{.max_decimals = integer ? 0 : 16};
  OUTRIDER_RETURN_IF_ERROR(
      read_bound(node, "minimum", "exclusiveMinimum", /*least=*/true, range.least));
  OUTRIDER_RETURN_IF_ERROR(
      read_bound(node, "maximum", "exclusiveMaximum", /*least=*/false, range.most));
  if (node.contains("multipleOf")) {
    const std::optional<int> decimals = decimals_of_multiple(node["multipleOf"]);
    if (!decimals && !loose) {
      return invalid_argument(
          "'multipleOf' cannot be kept to, other than 1, 0.1, 0.01, ...; "
          "leave it out");
    }
    range.max_decimals = std::min(range.max_decimals, decimals.value_or(range.max_decimals));
  }
  OUTRIDER_ASSIGN_OR_RETURN(std::string expression, number_expression(range));
  node = rules_.number_mark(std::move(expression), integer);
  return Status();
}

}  // namespace outrider::llama
