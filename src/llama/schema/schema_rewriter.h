// Writes a JSON schema in the words that llama-common's converter knows and keeps to.
//
// What its converter does not survive or does not honour (common/json-schema.cpp,
// json-schema-to-grammar.cpp of v0.5.0):
//  - schemas that are true or false; "#" as a reference; references with escapes;
//  - a $ref that leads back to itself by $refs only (endless recursion below allOf, a rule that
//    begins with itself elsewhere); schemas that contain themselves below a property or an item
//    (trees, lists) are fine;
//  - patterns, numbers between bounds, integers beyond 1e15 (value_rules.h);
//  - minLength, maxLength, minItems, maxItems above 2,000, which llama.cpp's grammars turn into no
//    limit, or a least above the most, which never ends;
//  - allOf of anything but objects: they become an empty object;
//  - lists of types that hold lists of types, which it multiplies out; more than 200 properties of
//    one object, over which it is cubic; deep nesting and long names, over which it recurses;
//  - oneOf, which it reads as anyOf (schema_alternatives.h); alternatives that lead back to their
//    own schema;
//  - keywords that it does not know (uniqueItems, not, ...), which it passes over.
// What says the same in other words is written so. What is left is refused, or passed over, as
// `Keeping` says. Annotations, which say nothing of what is valid (title, ...), stay.
//
// Tested by json_schema_test.cc.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "json/json.h"
#include "llama/schema/value_rules.h"

namespace outrider::llama {

enum class Keeping : std::uint8_t {
  kStrict,  // every text of the grammar is valid; what cannot be kept to is refused
  kLoose,   // what cannot be kept to is passed over, so that the grammar allows more
};

inline Keeping keeping_of(bool strict) { return strict ? Keeping::kStrict : Keeping::kLoose; }

// Errors: kInvalidArgument with the place in the schema ("#/properties/x") and the reason; with
// kLoose only for a type that there is not, and for a schema that is too large. `root` is then of
// no use.
Status rewrite_schema(json::Json& root, Keeping keeping, ValueRules& rules);

}  // namespace outrider::llama
