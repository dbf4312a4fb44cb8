// The local references of a JSON schema: "#", "#/$defs/x", with JSON pointer's escapes.
#pragma once

#include <string>

#include "json/json.h"

namespace outrider::llama {

// What `ref` refers to; null: nothing in this schema.
json::Json* resolve(json::Json& root, const std::string& ref);

// Whether `ref` leads back to itself by $refs alone, and never to a schema.
bool leads_back(json::Json& root, const std::string& ref);

// llama-common's converter reads "#/a/b" only, without escapes. What other references refer to is
// copied below $defs, and they refer to the copy. Those that lead nowhere stay as they
// are, and so do more than 16.
void write_plain_refs(json::Json& root);

// A schema whose root is only a reference becomes what that refers to, so that what looks for
// properties finds them.
void inline_root(json::Json& root);

// For a schema that becomes a part of another one, at `place` ("#/$defs/x").
void move_refs(json::Json& schema, const std::string& place);

}  // namespace outrider::llama
