// JSON-RPC 2.0 (jsonrpc.org/specification): text in, text out.
//
//   {"jsonrpc":"2.0","id":1,"method":"tokenize","params":{"text":"hi"}}
//   -> {"jsonrpc":"2.0","id":1,"result":{"tokens":[...],"count":1}}
//   -> {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"text is missing","data":
//       {"code":"invalid_argument","field":"text"}}}
//
//  - Parameters go by name. A request without "id" is a notification: nothing is answered, not even
//    an error. An id is a string, a whole number or null.
//  - A batch (an array, at most kMaxBatch requests) is worked on in order and answered by an array,
//    or by nothing when it holds notifications only.
//  - At most kMaxRequestBytes, json::kMaxDepth levels.
//
// Codes: -32700 not JSON (or too long, too deep), -32600 not a request, -32601 no such method,
// -32602 a parameter is wrong, -32603 failed inside; and ours: -32001 not_found, -32002
// unsupported, -32003 resource_exhausted, -32004 cancelled, -32005 data_loss. data.code is the
// name; data.field names the field that is wrong, or is null.
//
// Tested by json_rpc_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "json/json.h"

namespace outrider::api {

inline constexpr std::size_t kMaxRequestBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxBatch = 64;

// What answers a request. `params` is an object. Null when there is no method of that name.
using CallResult = std::optional<Result<json::Json>>;
using Dispatch = std::function<CallResult(std::string_view method, const json::Json& params)>;

// The response's text in one line without a newline; empty when there is none (notifications).
// Throws nothing but what `dispatch` throws, and std::bad_alloc.
std::string answer_json_rpc(std::string_view text, const Dispatch& dispatch);

// The response for a request whose id is not known.
std::string json_rpc_error(int code, const Status& error);

// {"jsonrpc":"2.0","method":method,"params":params} in one line: a notification to the client.
std::string json_rpc_notification(std::string_view method, const json::Json& params);

}  // namespace outrider::api
