#include "http/models/rpc_endpoint.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/completion_json.h"
#include "api/json_rpc.h"
#include "api/methods.h"
#include "api/model_params.h"
#include "api/service.h"
#include "api/spelling.h"
#include "http/endpoint/acquire.h"
#include "http/exchange/error_reply.h"

namespace outrider::http {
namespace {

using json::Json;

// Whose load model.load asks for; empty: it does not say.
std::string_view role_of(const Json& params) {
  const Json::const_iterator role = params.find("role");
  if (role == params.end() || !role->is_string()) return {};
  return role->get_ref<const std::string&>();
}

// A runtime without models knows neither why its model is not open nor how far that is.
void tell_state(const CatalogStatus& model, Json& target) {
  if (target["state"] != "absent") return;
  target["state"] = std::string(model_state_name(model.state));
  target["path"] = model.path;
  target["progress"] = model.progress;
  target["error"] = api::error_or_null(model.error);
}

bool is_not_there(const Result<Json>& result) {
  return !result.ok() && result.status().code() == StatusCode::kNotFound;
}

// The calls of one HTTP request.
class RpcCalls {
 public:
  RpcCalls(ServerState& server, const HttpRequest& request)
      : server_(server), request_(request), name_(request.parameter("model")) {}

  bool has_gone() const { return request_.gone && request_.gone(); }

  api::CallResult call(std::string_view method, const Json& params) {
    const bool loads = method == "model.load" && server_.options().allow_files;
    if (loads && role_of(params) == "target") return load_target(params);
    Result<std::shared_ptr<Runtime>> runtime = needs_target(method, params)
                                                   ? acquire_model(server_, request_, name_)
                                                   : server_.catalog().look(name_);
    if (!runtime.ok()) return runtime.status();
    // A server that is being stopped lets what runs go on for a while (--drain), as it does at all
    // endpoints, and then ends it by the runtime.
    api::Service service(**runtime, server_.options().allow_files, [this] { return has_gone(); });
    api::CallResult result = service.dispatch(method, params);
    const std::optional<CatalogStatus> model = server_.catalog().status_of(name_);
    if (!result || !model) return result;
    if (method == "system.status" && result->ok()) tell_state(*model, (**result)["target"]);
    const bool ends_load = method == "model.unload" || method == "model.cancel_load";
    if (ends_load && role_of(params) == "target" && is_not_there(*result) &&
        model->state == ModelState::kLoading) {  // it waits for its turn, without a runtime yet
      const Status status = server_.catalog().unload(name_);
      if (!status.ok()) return status;
      return Result<Json>(Json{{"role", "target"}});
    }
    return result;
  }

 private:
  bool needs_target(std::string_view method, const Json& params) const {
    if (method == "model.load") {
      const std::string_view role = role_of(params);
      return server_.options().allow_files && (role == "draft" || role == "drafter");
    }
    const api::Method* const found = api::find_method(method);
    return found != nullptr && found->needs_target;
  }

  api::CallResult load_target(const Json& params) {
    Result<api::LoadRequest> asked = api::read_load_request(params);
    if (!asked.ok()) return api::spelled_as_in(asked.status(), params);
    const Status status = server_.catalog().load_target(name_, std::move(asked->options));
    if (!status.ok()) return status;
    return Result<Json>(Json{{"role", "target"}, {"state", "loading"}});
  }

  ServerState& server_;
  const HttpRequest& request_;
  const std::string_view name_;
};

}  // namespace

HttpReply rpc(ServerState& server, const HttpRequest& request) {
  // Here a wrong name is not taken for the only model's: nothing in the answer would say so.
  const std::string_view name = request.parameter("model");
  if (!name.empty() && !server.catalog().status_of(name)) return no_such_model(name);
  RpcCalls calls(server, request);
  HttpReply reply{.body = api::answer_json_rpc(
                      request.body, [&calls](std::string_view method, const Json& params) {
                        return calls.call(method, params);
                      })};
  if (calls.has_gone()) return error_reply(kClientGone, "the client has gone");
  if (reply.body.empty()) reply.status = 204;
  return reply;
}

}  // namespace outrider::http
