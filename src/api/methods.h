// The one table of methods: outrider_call and `outrider rpc` both serve it.
//
// Each takes a JSON object of parameters and gives a JSON object. Methods that wait
// (completion.run, completion.poll and system.status with wait_ms) do so on the caller's thread and
// end early when the caller gives up: a run is cancelled then and gives what it has.
//
// Tested by methods_test.cc: every method and every parameter.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "api/completion_params.h"
#include "base/status.h"
#include "json/json.h"
#include "serve/runtime.h"

namespace outrider::api {

// What methods work on.
struct MethodContext {
  Runtime& runtime;  // outlives the call
  // Whether nobody waits any more; not empty. Asked about every 50 ms, on the caller's thread.
  std::function<bool()> gives_up;
};

struct Method {
  std::string_view name;  // "completion.start"
  std::string_view help;  // one line
  std::span<const Parameter> parameters;

  // Any thread. `params` is an object. Throws nothing but std::bad_alloc.
  // An error names its field as CompletionRequest has it; api/spelling.h says it as the client did.
  Result<json::Json> (*call)(const MethodContext& context, const json::Json& params);

  // It changes what is served to all clients, and names files of this machine.
  bool for_operators = false;

  // It computes on the target, so that a server opens the model for it.
  bool needs_target = false;
};

// In the order of the documentation. Static storage.
std::span<const Method> methods();

// Null when there is none of that name.
const Method* find_method(std::string_view name);

// The most that a call may wait, in milliseconds; clients that want more ask again.
inline constexpr std::int64_t kMaxWaitMs = 3'600'000;

}  // namespace outrider::api
