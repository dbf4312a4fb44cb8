// Whether a value is valid by a JSON schema: the words that llama/schema keeps to, one after the
// other as the specification (draft 2020-12) has them. For tests to compare with, so it has nothing
// in common with what they test, and takes its time.
#pragma once

#include "json/json.h"

namespace outrider::testing {

// Objects are equal whatever their order. "format" and what describes a schema for people say
// nothing. `root` is the document that references are about. Throws std::invalid_argument on a
// word that it does not know. REQUIRES: no schema refers to itself without a property or an item
// between
bool is_valid(const json::Json& value, const json::Json& schema, const json::Json& root);

}  // namespace outrider::testing
