// From a JSON schema to a grammar, by llama-common's converter, with checks before it.
//
// What its converter does not survive or does not honour (common/json-schema.cpp,
// json-schema-to-grammar.cpp of v0.5.0), and is refused here:
//  - a $ref that leads back to itself by $refs only (endless recursion below allOf, a rule that
//    begins with itself elsewhere); schemas that contain themselves below a property or an item
//    (trees, lists) are fine;
//  - patterns that its grammar cannot express (look-around, no ^ and $, nested more than 100 deep):
//    it prints a warning and accepts any string;
//  - minLength, maxLength, minItems, maxItems above 2,000, which llama.cpp's grammars turn into no
//    limit, or a least above the most, which never ends;
//  - lists of types that hold lists of types, which it multiplies out; more than 200 properties of
//    one object, over which it is cubic; deep nesting and long names, over which it recurses.
// Annotations, which say nothing of what is valid (title, format, ...), are passed over. Keywords
// that cannot be kept to (uniqueItems: true, ...) are refused by name.
//
// Tested by json_schema_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace outrider::llama {

// The GBNF grammar of the JSON texts that `schema` (a JSON text) describes.
// Errors: kInvalidArgument with the place in the schema ("#/properties/x") and the reason.
Result<std::string> grammar_from_json_schema(std::string_view schema);

// The checks alone, for schemas that llama.cpp turns into a part of a grammar.
Status check_json_schema(std::string_view schema);

}  // namespace outrider::llama
