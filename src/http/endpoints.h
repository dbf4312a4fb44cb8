// The table of endpoints: what is served under which path. From it follow the routing, the answer
// to OPTIONS, and /openapi.json.
#pragma once

#include <span>

#include "http/endpoint/endpoint.h"

namespace outrider::http {

// In the order of the documentation. Static storage.
std::span<const Endpoint> endpoints();

}  // namespace outrider::http
