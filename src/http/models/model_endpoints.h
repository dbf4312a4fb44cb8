// Endpoints about the models and the server itself.
#pragma once

#include "http/endpoint/endpoint.h"

namespace outrider::http {

// GET /v1/models -> OpenAI's list; each also with "status": {"state","progress","error"},
// "aliases", "draft": the file of its draft model or null, and "meta": {"n_vocab","n_ctx",
// "n_ctx_train","n_params","size"} or null where it is not open.
// To clients of Anthropic's API (the header anthropic-version) in its form, all on one page.
HttpReply list_models(ServerState& server, const HttpRequest& request);

// GET /v1/models/NAME -> one of these; 404.
HttpReply one_model(ServerState& server, const HttpRequest& request);

// GET /health -> {"status":"ok"}; 503 while the default model is being opened ({"status":"loading",
// "progress"}), or could not be.
HttpReply health(ServerState& server, const HttpRequest& request);

// POST /rpc?model=NAME -> the methods of api/methods.h for that model's runtime. Those that name
// files of this machine only with ServerOptions::allow_files.
HttpReply rpc(ServerState& server, const HttpRequest& request);

}  // namespace outrider::http
