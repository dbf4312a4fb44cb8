// GET /openapi.json: the endpoints, described by their table (endpoints.h) and by the one schema of
// a request (api/completion_params.h).
//
// Tested by server_test.cc.
#pragma once

#include <span>
#include <vector>

#include "api/read_fields.h"
#include "http/endpoint/endpoint.h"
#include "json/json.h"

namespace outrider::http {

// An OpenAPI 3.1 document.
json::Json openapi_document(std::span<const Endpoint> endpoints);

HttpReply openapi(ServerState& server, const HttpRequest& request);

// The fields of a body, for Endpoint::body: OpenAI's chat and text completions and responses,
// Anthropic's messages.
std::vector<api::Parameter> chat_parameters();
std::vector<api::Parameter> text_parameters();
std::vector<api::Parameter> responses_parameters();
std::vector<api::Parameter> messages_parameters();

}  // namespace outrider::http
