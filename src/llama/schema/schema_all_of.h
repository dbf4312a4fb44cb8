// allOf, which llama-common's converter knows of objects only: there it makes every property a
// required one, writes one that two parts have twice, and passes over whatever else is said.
#pragma once

#include <optional>

#include "json/json.h"

namespace outrider::llama {

// allOf of one schema is that schema, unless more is said beside it.
void join_single_all_of(json::Json& node);

// `node`, which has an allOf, as one object: its own properties and those of the parts, through
// references, which name_refs() has written in `root`. With `all`, nothing where a part is anything
// but an open object, or where two parts say different things of a property. Without, such parts
// and the second thing said are left out, so that more is allowed; nothing where no part is an
// object.
std::optional<json::Json> merge_all_of(json::Json& root, const json::Json& node, bool all);

}  // namespace outrider::llama
