// What is served under a path.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "api/read_fields.h"
#include "base/status.h"
#include "http/endpoint/server_state.h"
#include "http/exchange/exchange.h"
#include "json/json.h"

namespace outrider::http {

struct Endpoint {
  std::string_view method;
  std::string_view path;     // may end in a name in braces, which stands for any: "/models/{model}"
  std::string_view summary;  // one line, for /openapi.json
  HttpReply (*answer)(ServerState& server, const HttpRequest& request);
  bool open = false;  // needs no key
  // The fields of its body; null: it has none, or they are not ours to list.
  std::vector<api::Parameter> (*body)() = nullptr;
  // Of these the ones that must be there.
  std::array<std::string_view, 2> required = {};
  // For POST without a list of fields, and for the answer (empty: none): a schema of
  // answer_schemas.h.
  std::string_view body_schema = "Object";
  std::string_view answers = {};
  std::string_view anthropic_answers = {};  // to clients of Anthropic's API, where that is another
  bool streams = false;                     // may answer with server-sent events
  bool silent = false;                      // may answer 204, with nothing
  std::string_view content_type = "application/json";
};

// The name in braces at the end of a path, "model"; empty: there is none.
std::string_view name_in_path(const Endpoint& endpoint);

// Whether `path` is this one's. Where it ends in a name in braces there may be anything but nothing
// in its place, also with slashes.
bool is_at(const Endpoint& endpoint, std::string_view path);

// The body as a JSON object; an error that says where it is not one.
Result<json::Json> read_body(const HttpRequest& request);

}  // namespace outrider::http
