// Endpoints about what the server has counted and measured.
#pragma once

#include "http/exchange/exchange.h"

namespace outrider::http {

class ServerState;

// GET /metrics: Prometheus' text form (exposition.h).
HttpReply metrics(ServerState& server, const HttpRequest& request);

// GET /outrider/speculation?model=NAME: what guessing has brought so far, of an open model:
//
//   {"curve":[{"width","ms"}]      what a pass of so many tokens takes; empty: not measured
//    "floor":[{"width","ms"}]      the least that it could take here; null: not measured (floors.h)
//    "depths":[{"depth","drafted","accepted"}],   guesses by how deep they stand in a step, from 1
//    "steps","drafted","accepted","emitted","tokens_per_step","acceptance_rate",
//    "drafters":{NAME: as in a result's "speculation"}}
HttpReply speculation(ServerState& server, const HttpRequest& request);

}  // namespace outrider::http
