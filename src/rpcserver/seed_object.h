// A JSON object read the way the seed's apps expect it (api/json_fields.h does the reading).
//
// null stands for the default, whole numbers may be written with a point ("40.0"), keys that nobody
// asked for are warnings. A value of the wrong kind, which made the seed's code throw, is an error
// that names its field; the first error counts.
//
// Tested by seed_object_test.cc.
#pragma once

#include <string>
#include <vector>

#include "api/json_fields.h"
#include "json/json.h"

namespace outrider::rpcserver {

using api::JsonFields;

inline constexpr api::Dialect kSeedDialect{
    .null_is_absent = true, .may_be_unknown = true, .values_as_sent = true};

// Parses `text`, an object. Null and "" are an empty object when `may_be_empty`, else refused.
Result<json::Json> parse_object(const char* text, bool may_be_empty);

// "<key> is not known and has no effect", for every key that was not asked for.
void warn_of_unknown(const JsonFields& fields, std::vector<std::string>& warnings);

}  // namespace outrider::rpcserver
