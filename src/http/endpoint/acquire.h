// The model that a request is about.
#pragma once

#include <memory>
#include <string_view>

#include "http/endpoint/server_state.h"
#include "http/exchange/exchange.h"
#include "json/json.h"
#include "serve/runtime.h"

namespace outrider::http {

// The model of that name (empty: the default), opened where needed; given up when the client goes
// or the server stops. Errors: kNotFound (a name that is not there, and nothing else);
// kResourceExhausted, kCancelled as Catalog::acquire()'s; kInternal for what is wrong with the
// model's files, which are named without their folders.
Result<std::shared_ptr<Runtime>> acquire_model(ServerState& server, const HttpRequest& request,
                                               std::string_view name);

// The model of that name if it is open: for what must neither load one nor put another away.
// Errors: kNotFound (no such name, or not open); kCancelled (it is being opened: ask again);
// kInternal as acquire_model's.
Result<std::shared_ptr<Runtime>> find_open_model(ServerState& server, std::string_view name);

// A model that is open, and stays so.
struct LeasedModel {
  std::shared_ptr<Runtime> runtime;      // not null
  std::shared_ptr<const Target> target;  // not null
};

// The same with its target, for what needs no completion. Errors: as acquire_model's; kCancelled
// also when the target has just been taken away.
Result<LeasedModel> open_model(ServerState& server, const HttpRequest& request,
                               std::string_view name);
// The same of a model that is open. Errors: as find_open_model's; kCancelled as open_model's.
Result<LeasedModel> find_open_target(ServerState& server, std::string_view name);

// 404, about the model.
HttpReply no_such_model(std::string_view name);

// What the client is told of such an error.
HttpReply model_error_reply(const Status& status);

// The text of body["model"]; empty: there is none. What it is otherwise is whoever reads the body
// to say.
std::string_view model_of(const json::Json& body);

}  // namespace outrider::http
