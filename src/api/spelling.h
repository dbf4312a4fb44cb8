// How a client's own JSON spells the field that a failure is about.
#pragma once

#include "base/status.h"
#include "json/json.h"

namespace outrider::api {

// The failure of a request with these `params`: a field that is in their "speculative" and not
// beside it is spelled "speculative.width", what is wrong with a prompt is about "messages" where
// these were given, that or what is wrong with messages about "input", and what is wrong with tools
// about "functions". Ok stays ok.
Status spelled_as_in(const Status& status, const json::Json& params);

}  // namespace outrider::api
