// Endpoints about the models and the server itself.
#pragma once

#include <vector>

#include "api/read_fields.h"
#include "http/endpoint/endpoint.h"

namespace outrider::http {

// GET /v1/models -> OpenAI's list; each also with "status": {"state","progress","error"}, in it as
// llama-server's router has it "value": loaded, loading or unloaded, and "failed": true where it
// could not be opened; "aliases", "draft": the file of its draft model or null, and "meta":
// {"n_vocab","n_ctx", "n_ctx_train","n_params","size"} or null where it is not open. To clients of
// Anthropic's API (the header anthropic-version) in its form, all on one page.
HttpReply list_models(ServerState& server, const HttpRequest& request);

// GET /v1/models/NAME -> one of these; 404.
HttpReply one_model(ServerState& server, const HttpRequest& request);

// POST /models/load {"model": NAME} -> {"success":true}: it is being opened, or is open. As
// llama-server has it, and /models/unload as well; the 404 of both names the models that there are.
HttpReply load_model(ServerState& server, const HttpRequest& request);

// POST /models/unload {"model": NAME} -> {"success":true}: it is closed, once nobody uses it.
HttpReply unload_model(ServerState& server, const HttpRequest& request);

// The body of both, for /openapi.json.
std::vector<api::Parameter> model_name_parameters();

// GET /health -> {"status":"ok"}; 503 while the default model is being opened ({"status":"loading",
// "progress"}), was lost, or could not be opened, all of which ends without a request.
HttpReply health(ServerState& server, const HttpRequest& request);

}  // namespace outrider::http
