#include "llama/schema/schema_words.h"

#include <cmath>
#include <functional>
#include <map>

namespace outrider::llama {
namespace {

using Words = std::set<std::string, std::less<>>;

const std::map<std::string, Words, std::less<>>& words_of_types() {
  static const std::map<std::string, Words, std::less<>> kWords = {
      {"object", {"properties", "required", "additionalProperties"}},
      {"array", {"items", "prefixItems", "minItems", "maxItems"}},
      {"string", {"pattern", "minLength", "maxLength"}},
      {"integer", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
      {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
      {"boolean", {}},
      {"null", {}}};
  return kWords;
}

}  // namespace

// "discriminator", which pydantic writes, is OpenAPI's word for what oneOf says already: which
// property tells its alternatives apart.
bool is_annotation(std::string_view key) {
  static const Words kAnnotations = {"title",       "description", "default",      "examples",
                                     "$schema",     "$id",         "$comment",     "$defs",
                                     "definitions", "deprecated",  "readOnly",     "writeOnly",
                                     "format",      "$anchor",     "discriminator"};
  return kAnnotations.contains(key);
}

bool is_type(std::string_view name) { return words_of_types().contains(name); }

bool is_of_types(const json::Json& value, const std::set<std::string>& types) {
  const bool whole = value.is_number_integer() ||
                     (value.is_number() && std::floor(value.get<double>()) == value.get<double>());
  return (value.is_null() && types.contains("null")) ||
         (value.is_boolean() && types.contains("boolean")) ||
         (value.is_string() && types.contains("string")) ||
         (value.is_array() && types.contains("array")) ||
         (value.is_object() && types.contains("object")) ||
         (value.is_number() && types.contains("number")) || (whole && types.contains("integer"));
}

std::set<std::string> types_of(const json::Json& node) {
  std::set<std::string> types;
  const auto add = [&types](const json::Json& type) {
    if (type.is_string()) types.insert(type.get<std::string>());
  };
  if (!node.contains("type")) {
    for (const auto& [type, words] : words_of_types()) types.insert(type);
  } else if (node["type"].is_array()) {
    for (const json::Json& type : node["type"]) add(type);
  } else {
    add(node["type"]);
  }
  return types;
}

bool is_known_of(std::string_view key, std::string_view type) {
  const auto words = words_of_types().find(type);
  return words != words_of_types().end() && words->second.contains(key);
}

const char* alone_word(const json::Json& node) {
  for (const char* word : {"oneOf", "anyOf", "const", "enum"}) {
    if (node.contains(word)) return word;
  }
  return nullptr;
}

bool is_general(std::string_view key) {
  static const Words kGeneral = {"type", "const", "enum", "oneOf", "anyOf", "allOf", "$ref"};
  return kGeneral.contains(key);
}

}  // namespace outrider::llama
