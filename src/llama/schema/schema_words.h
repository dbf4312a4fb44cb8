// What each keyword of a JSON schema constrains.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "json/json.h"

namespace outrider::llama {

// Says nothing of what is valid.
bool is_annotation(std::string_view key);

bool is_type(std::string_view name);
bool is_of_types(const json::Json& value, const std::set<std::string>& types);

// The types that `node` names; all of them where it names none.
std::set<std::string> types_of(const json::Json& node);

// Whether the converter, or the rewriter before it, looks at `key` for values of `type`.
bool is_known_of(std::string_view key, std::string_view type);

// What makes the converter pass over everything else; null: there is none.
const char* alone_word(const json::Json& node);

// Of all types: "type", "enum", "anyOf", ...
bool is_general(std::string_view key);

}  // namespace outrider::llama
