// The table of endpoints: what is served under which path. From it follow the routing, the answer
// to OPTIONS, and /openapi.json.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "api/read_fields.h"
#include "base/status.h"
#include "http/exchange.h"
#include "http/server.h"
#include "json/json.h"

namespace outrider::http {

struct Endpoint {
  std::string_view method;
  std::string_view path;
  std::string_view summary;  // one line, for /openapi.json
  HttpReply (*answer)(Server& server, const HttpRequest& request);
  bool open = false;  // needs no key
  // The fields of its body; null: it has none, or they are not ours to list.
  std::vector<api::Parameter> (*body)() = nullptr;
  // Of these the ones that must be there.
  std::array<std::string_view, 2> required = {};
  // For POST without a list of fields, and for the answer (empty: none): a schema of
  // answer_schemas.h.
  std::string_view body_schema = "Object";
  std::string_view answers = {};
  bool streams = false;  // may answer with server-sent events
  bool silent = false;   // may answer 204, with nothing
  std::string_view content_type = "application/json";
};

// In the order of the documentation. Static storage.
std::span<const Endpoint> endpoints();

// The body as a JSON object; an error that says where it is not one.
Result<json::Json> read_body(const HttpRequest& request);

}  // namespace outrider::http
