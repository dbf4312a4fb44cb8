#include "testing/schema_validator.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <regex>
#include <stdexcept>
#include <string>

namespace outrider::testing {
namespace {

using json::Json;

bool same(const Json& one, const Json& other) {
  if (one.is_number() && other.is_number()) return one == other;
  if (one.type() != other.type()) return false;
  if (!one.is_structured()) return one == other;
  if (one.size() != other.size()) return false;
  if (one.is_array()) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), same);
  }
  return std::all_of(one.items().begin(), one.items().end(), [&other](const auto& item) {
    return other.contains(item.key()) && same(item.value(), other[item.key()]);
  });
}

bool is_of(const Json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  if (type == "number") return value.is_number();
  if (type != "integer") throw std::invalid_argument("no type " + type);
  return value.is_number() && std::trunc(value.get<double>()) == value.get<double>();
}

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

// Of the words about any value, and about numbers and texts. True where it is another word, too.
bool keeps_to_word(const Json& value, const std::string& word, const Json& said) {
  if (word == "type") {
    if (said.is_string()) return is_of(value, said);
    return std::any_of(said.begin(), said.end(), [&](const Json& t) { return is_of(value, t); });
  }
  if (word == "const") return same(value, said);
  if (word == "enum") {
    return std::any_of(said.begin(), said.end(), [&](const Json& one) { return same(value, one); });
  }
  if (value.is_number()) {
    const double number = value.get<double>();
    if (word == "minimum") return number >= said.get<double>();
    if (word == "maximum") return number <= said.get<double>();
    if (word == "exclusiveMinimum") return number > said.get<double>();
    if (word == "exclusiveMaximum") return number < said.get<double>();
  }
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    if (word == "minLength") return characters(text) >= said.get<std::size_t>();
    if (word == "maxLength") return characters(text) <= said.get<std::size_t>();
    if (word == "pattern") return std::regex_search(text, std::regex(said.get<std::string>()));
  }
  if (value.is_array()) {
    if (word == "minItems") return value.size() >= said.get<std::size_t>();
    if (word == "maxItems") return value.size() <= said.get<std::size_t>();
  }
  if (word == "required" && value.is_object()) {
    return std::all_of(said.begin(), said.end(),
                       [&](const Json& name) { return value.contains(name.get<std::string>()); });
  }
  return true;
}

bool is_about_one_value(const std::string& word) {
  static const char* const kWords[] = {"type",
                                       "const",
                                       "enum",
                                       "minimum",
                                       "maximum",
                                       "exclusiveMinimum",
                                       "exclusiveMaximum",
                                       "pattern",
                                       "minItems",
                                       "maxItems",
                                       "minLength",
                                       "maxLength",
                                       "required"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

bool says_nothing(const std::string& word) {
  static const char* const kWords[] = {"$defs",   "format",      "title",
                                       "default", "description", "discriminator"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

std::size_t n_valid(const Json& value, const Json& schemas, const Json& root) {
  return static_cast<std::size_t>(std::count_if(
      schemas.begin(), schemas.end(), [&](const Json& one) { return is_valid(value, one, root); }));
}

bool properties_are_valid(const Json& value, const Json& schema, const Json& root) {
  if (!value.is_object()) return true;
  const Json properties = schema.value("properties", Json::object());
  const Json others = schema.value("additionalProperties", Json(true));
  return std::all_of(value.items().begin(), value.items().end(), [&](const auto& item) {
    const bool named = properties.contains(item.key());
    return is_valid(item.value(), named ? properties[item.key()] : others, root);
  });
}

bool items_are_valid(const Json& value, const Json& schema, const Json& root) {
  if (!value.is_array()) return true;
  const Json first = schema.value("prefixItems", Json::array());
  const Json others = schema.value("items", Json(true));
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (!is_valid(value[i], i < first.size() ? first[i] : others, root)) return false;
  }
  return true;
}

// "#", "#/$defs/a"
const Json& referred(const std::string& ref, const Json& root) {
  return root.at(Json::json_pointer(ref.substr(1)));
}

bool keeps_to(const Json& value, const std::string& word, const Json& said, const Json& root) {
  if (is_about_one_value(word)) return keeps_to_word(value, word, said);
  if (word == "$ref") return is_valid(value, referred(said, root), root);
  if (word == "anyOf") return n_valid(value, said, root) > 0;
  if (word == "oneOf") return n_valid(value, said, root) == 1;
  if (word == "allOf") return n_valid(value, said, root) == said.size();
  if (says_nothing(word)) return true;
  throw std::invalid_argument("the reference does not know '" + word + "'");
}

}  // namespace

bool is_valid(const Json& value, const Json& schema, const Json& root) {
  if (schema.is_boolean()) return schema.get<bool>();
  for (const auto& [word, said] : schema.items()) {
    const bool of_parts = word == "properties" || word == "additionalProperties" ||
                          word == "items" || word == "prefixItems";
    if (!of_parts && !keeps_to(value, word, said, root)) return false;
  }
  return properties_are_valid(value, schema, root) && items_are_valid(value, schema, root);
}

}  // namespace outrider::testing
