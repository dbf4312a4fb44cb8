// The local references of a JSON schema: "#", "#/$defs/x", with JSON pointer's escapes.
//
// llama-common's converter reads "#/a/b" only, without escapes. It names the rule of a reference by
// its text without punctuation, and makes one grammar of all tools of a request: two tools that
// both have a "#/$defs/Item" would get the same rule. And a schema that is referred to may have to
// be moved. So before anything else each is copied to a place and a name of its own.
#pragma once

#include <map>
#include <string>

#include "json/json.h"
#include "llama/schema/value_rules.h"

namespace outrider::llama {

// What is referred to is copied to $defs, which holds nothing else then, under a name of `rules`,
// and every reference refers to the copy. References that lead nowhere stay as they are, and so do
// those behind the first 500, or where the copies would be too large.
// Returns what each reference was, by what it is now: for messages.
std::map<std::string, std::string> name_refs(json::Json& root, ValueRules& rules);

// The reference to a definition of that name.
std::string definition_ref(const std::string& name);

// What `ref`, one that name_refs() wrote, refers to; null: it is none.
json::Json* named_target(json::Json& root, const std::string& ref);

// Where a reference leads, over others; null: nowhere, back to itself, or over more than 64.
json::Json* final_target(json::Json& root, const std::string& ref);
// The last of these references; empty where final_target() is null.
std::string final_ref(json::Json& root, const std::string& ref);

// A schema whose root is only a reference becomes what that refers to, so that what looks for
// properties finds them.
void inline_root(json::Json& root);

}  // namespace outrider::llama
