// POST /rpc: the methods of api/methods.h over HTTP.
//
// Tested by rpc_endpoint_test.cc.
#pragma once

#include "http/exchange/exchange.h"

namespace outrider::http {

class ServerState;

// POST /rpc?model=NAME -> the methods for that model's runtime. Those that name files of this
// machine only with ServerOptions::allow_files. The model is opened for methods that compute on it
// (api::Method::needs_target, and model.load of what guesses for it), and an error of that is the
// call's. The others tell of it or change it as it is. model.load of a
// target changes what the catalog opens under this name (Catalog::load_target).
HttpReply rpc(ServerState& server, const HttpRequest& request);

}  // namespace outrider::http
