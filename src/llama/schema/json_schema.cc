#include "llama/schema/json_schema.h"

#include <exception>
#include <utility>

#include "base/utf8.h"
#include "json-schema-to-grammar.h"
#include "llama/schema/schema_words.h"

namespace outrider::llama {
namespace {

using json::Json;

Status check_text(std::string_view text) {
  if (text.size() > kMaxSchemaBytes) {
    return invalid_argument("the schema has " + std::to_string(text.size()) + " bytes, more than " +
                            std::to_string(kMaxSchemaBytes));
  }
  OUTRIDER_RETURN_IF_ERROR(check_utf8(text, "the schema"));
  const std::size_t deep = json::too_deep(text);
  if (deep != std::string_view::npos) {
    return invalid_argument("the schema is nested more than " + std::to_string(json::kMaxDepth) +
                            " deep, at byte " + std::to_string(deep));
  }
  return Status();
}

}  // namespace

Result<Json> convertible_schema(std::string_view schema, Keeping keeping, ValueRules& rules) {
  OUTRIDER_RETURN_IF_ERROR(check_text(schema));
  Json root;
  try {
    root = Json::parse(schema);
  } catch (const Json::exception& error) {
    return invalid_argument(std::string("the schema is not JSON: ") + error.what());
  }
  return convertible_value(std::move(root), keeping, rules);
}

Result<Json> convertible_value(Json schema, Keeping keeping, ValueRules& rules) {
  try {
    OUTRIDER_RETURN_IF_ERROR(rewrite_schema(schema, keeping, rules));
    return schema;
  } catch (const Json::exception& error) {  // a value of a kind that nothing asked about
    return invalid_argument(std::string("the schema cannot be read: ") + error.what());
  }
}

void hold_to_object(Json& convertible) {
  if (alone_word(convertible) != nullptr || convertible.contains("$ref")) return;
  const bool is = convertible.contains("type") ? convertible["type"] == "object"
                                               : convertible.contains("properties");
  if (!is) convertible["type"] = "object";
}

Result<std::string> grammar_from_convertible(const Json& schema, const ValueRules& rules) {
  try {
    const common_json given = common_json::parse(json::encode(schema));
    return rules.write(json_schema_to_grammar(given, /*force_gbnf=*/true));
  } catch (const std::exception& error) {
    return invalid_argument(std::string("the schema cannot be turned into a grammar: ") +
                            error.what());
  }
}

Result<std::string> grammar_from_json_schema(std::string_view schema, Keeping keeping) {
  ValueRules rules;
  OUTRIDER_ASSIGN_OR_RETURN(const Json convertible, convertible_schema(schema, keeping, rules));
  return grammar_from_convertible(convertible, rules);
}

}  // namespace outrider::llama
