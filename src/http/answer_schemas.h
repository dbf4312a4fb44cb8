// The components of /openapi.json that are not fields of a request: what answers look like, errors,
// and the messages of a conversation. tests/clients/openapi_test.py holds the answers against them.
#pragma once

#include <string>
#include <string_view>

#include "json/json.h"

namespace outrider::http {

// {"Error": {...}, "ChatCompletion": {...}, ...}
json::Json answer_schemas();

// {"$ref": "#/components/schemas/<name>"}
json::Json schema_reference(std::string_view name);

}  // namespace outrider::http
