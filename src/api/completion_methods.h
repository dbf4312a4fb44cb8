// The methods completion.*: see api/methods.h.
#pragma once

#include "api/methods.h"

namespace outrider::api {

// -> {"id","prompt_stats"} (api/update_json.h). Errors: read_completion's and Runtime::start's.
Result<json::Json> completion_start(const MethodContext& context, const json::Json& params);

// {"id","wait_ms"} -> {"updates","finished","prompt_progress"}, and "result" once finished; then
// the id is unknown.
Result<json::Json> completion_poll(const MethodContext& context, const json::Json& params);

// {"id"} -> {"id"}
Result<json::Json> completion_cancel(const MethodContext& context, const json::Json& params);

// completion.start's parameters -> the result object
Result<json::Json> completion_run(const MethodContext& context, const json::Json& params);

}  // namespace outrider::api
