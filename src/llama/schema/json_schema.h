// From a JSON schema to a grammar, by llama-common's converter. A schema is first written in the
// words that the converter keeps to (schema_rewriter.h), and what it has no words for becomes rules
// of our own (value_rules.h).
//
// Tested by json_schema_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "json/json.h"
#include "llama/schema/schema_rewriter.h"
#include "llama/schema/value_rules.h"

namespace outrider::llama {

// The GBNF grammar of JSON texts that `schema` (a JSON text) describes.
// Errors: kInvalidArgument with the place in the schema ("#/properties/x") and the reason; with
// kLoose only for what is no schema at all, names a type that there is not, or is too large.
Result<std::string> grammar_from_json_schema(std::string_view schema,
                                             Keeping keeping = Keeping::kStrict);

inline constexpr std::size_t kMaxSchemaBytes = std::size_t{256} * 1024;

// The same in two steps, for schemas that become a part of a grammar. What comes out of the first
// is for the converter, and ValueRules::write() for what comes out of that.
// Errors: as above.
Result<json::Json> convertible_schema(std::string_view schema, Keeping keeping, ValueRules& rules);
// The first step of a schema that has been read, by json::parse(), from a text of at most
// kMaxSchemaBytes.
Result<json::Json> convertible_value(json::Json schema, Keeping keeping, ValueRules& rules);
// One that came out of it describes objects only, as calls' arguments are.
void hold_to_object(json::Json& convertible);
Result<std::string> grammar_from_convertible(const json::Json& schema, const ValueRules& rules);

}  // namespace outrider::llama
