// Whether no value can be valid by two schemas, as oneOf asks of its alternatives: then oneOf is
// anyOf, which grammars have.
//
// Found by types; by constants and enumerations; and, of objects, by a property that both require
// and whose schemas are disjoint in turn (a discriminator, {"kind": {"const": "cat"}}), or that one
// requires and the other forbids. Patterns, bounds and lengths are not looked at: schemas that only
// these tell apart count as overlapping, and so does what would take more than 50,000 comparisons.
//
// Tested by schema_disjoint_test.cc.
#pragma once

#include <cstddef>
#include <optional>

#include "json/json.h"

namespace outrider::llama {

// Two of a list of schemas, by index.
struct Overlap {
  std::size_t first = 0;
  std::size_t second = 0;
};

// The first two of `alternatives`, an array, that are not found to be disjoint; nothing: all are.
// `root` has the definitions that references of name_refs() lead to, as they were given. Neither is
// changed.
std::optional<Overlap> find_overlap(const json::Json& alternatives, json::Json& root);

}  // namespace outrider::llama
