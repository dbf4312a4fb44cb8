#include "api/json_rpc.h"

#include "api/json_fields.h"

namespace outrider::api {
namespace {

using json::Json;

constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kMethodNotFound = -32601;

// -32602 for kInvalidArgument, ...
int json_rpc_code(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
      return -32602;
    case StatusCode::kNotFound:
      return -32001;
    case StatusCode::kUnsupported:
      return -32002;
    case StatusCode::kResourceExhausted:
      return -32003;
    case StatusCode::kCancelled:
      return -32004;
    case StatusCode::kDataLoss:
      return -32005;
    case StatusCode::kOk:
    case StatusCode::kInternal:
      break;
  }
  return -32603;
}

Json error_response(const Json& id, int code, const Status& error) {
  const std::string_view name = code == kParseError       ? "parse_error"
                                : code == kInvalidRequest ? "invalid_request"
                                : code == kMethodNotFound ? "method_not_found"
                                                          : status_code_name(error.code());
  const Json field = error.field().empty() ? Json() : Json(error.field());
  return {{"jsonrpc", "2.0"},
          {"id", id},
          {"error",
           {{"code", code},
            {"message", error.message()},
            {"data", {{"code", std::string(name)}, {"field", field}}}}}};
}

bool can_be_id(const Json& id) { return id.is_null() || id.is_string() || id.is_number_integer(); }

// What is wrong with the request itself, apart from its method and parameters.
Status check_request(const Json& request) {
  if (!request.is_object()) {
    return invalid_argument("the request is " + std::string(json::kind(request)) +
                            ", but must be an object");
  }
  if (request.contains("id") && !can_be_id(request["id"])) {
    return wrong_value("id", shown(request["id"]), "a string, a whole number or null");
  }
  if (!request.contains("jsonrpc")) return refused("jsonrpc", "is missing, but must be '2.0'");
  if (!is_text(request["jsonrpc"], "2.0")) {
    return wrong_value("jsonrpc", shown(request["jsonrpc"]), "'2.0'");
  }
  if (!request.contains("method")) return refused("method", "is missing");
  if (!request["method"].is_string()) {
    return wrong_value("method", shown(request["method"]), "a method's name");
  }
  for (const Json::object_t::value_type& field : request.get_ref<const Json::object_t&>()) {
    const std::string& name = field.first;
    if (name == "jsonrpc" || name == "id" || name == "method" || name == "params") continue;
    const std::string cut = shown(Json(name));
    return invalid_argument(cut + " is not a field of a request")
        .about(cut.substr(1, cut.size() - 2));
  }
  return Status();
}

// Null: nothing to answer.
Json answer_one(const Json& request, const Dispatch& dispatch) {
  const Json id = request.contains("id") && can_be_id(request["id"]) ? request["id"] : Json();
  const Status checked = check_request(request);
  // Also without an id: it may not be a request at all.
  if (!checked.ok()) return error_response(id, kInvalidRequest, checked);
  const bool notification = !request.contains("id");
  const Json params = request.contains("params") ? request["params"] : Json::object();
  if (!params.is_object()) {
    if (notification) return {};
    return error_response(id, json_rpc_code(StatusCode::kInvalidArgument),
                          wrong_value("params", shown(params), "an object: parameters go by name"));
  }
  const std::string& method = request["method"].get_ref<const std::string&>();
  CallResult result = dispatch(method, params);
  if (notification) return {};
  if (!result) {
    return error_response(
        id, kMethodNotFound,
        wrong_value("method", shown(request["method"]), "one that system.methods lists"));
  }
  if (!result->ok()) {
    return error_response(id, json_rpc_code(result->status().code()), result->status());
  }
  return {{"jsonrpc", "2.0"}, {"id", id}, {"result", **std::move(result)}};
}

Json answer_batch(const Json& batch, const Dispatch& dispatch) {
  if (batch.empty()) {
    return error_response({}, kInvalidRequest, invalid_argument("the batch holds no request"));
  }
  if (batch.size() > kMaxBatch) {
    return error_response(
        {}, kInvalidRequest,
        invalid_argument("the batch holds " + std::to_string(batch.size()) + " requests, at most " +
                         std::to_string(kMaxBatch) + " can be"));
  }
  Json answers = Json::array();
  for (const Json& request : batch) {
    Json answer = answer_one(request, dispatch);
    if (!answer.is_null()) answers.push_back(std::move(answer));
  }
  return answers.empty() ? Json() : answers;
}

}  // namespace

std::string json_rpc_error(int code, const Status& error) {
  return json::encode(error_response({}, code, error));
}

std::string json_rpc_notification(std::string_view method, const Json& params) {
  return json::encode({{"jsonrpc", "2.0"}, {"method", std::string(method)}, {"params", params}});
}

std::string answer_json_rpc(std::string_view text, const Dispatch& dispatch) {
  if (text.size() > kMaxRequestBytes) {
    return json_rpc_error(
        kParseError,
        invalid_argument("the request has " + std::to_string(text.size()) + " bytes, at most " +
                         std::to_string(kMaxRequestBytes) + " can be"));
  }
  const json::Parsed parsed = json::parse_sent(text);
  if (!parsed.ok()) return json_rpc_error(kParseError, invalid_argument(parsed.error));
  const Json answer = parsed.value->is_array() ? answer_batch(*parsed.value, dispatch)
                                               : answer_one(*parsed.value, dispatch);
  return answer.is_null() ? "" : json::encode(answer);
}

}  // namespace outrider::api
