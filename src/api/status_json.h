// The runtime's state as JSON: system.status, stats, drafters.list.
//
//   model status  {"state": "absent"|"loading"|"ready"|"failed", "path", "progress", "error": null
//                 or {"code","message"}, "serving", "serving_path", "info": null or {"path",
//                 "architecture","name","description","n_params","size_bytes","n_ctx_train",
//                 "has_chat_template","chat_tools","chat_reasoning"}, "notes": [...]}
//   system.status {"version","commit": what it was built of, or null,"target": model status,
//                 "draft": model status,"exactness": null or {"verdict","coverage","reason"},
//                 "n_ctx","slots","running","queued","drafters": as in drafters.list}
//   stats         {"started","finished","running","queued","prompt_tokens","cached_tokens",
//                 "generated_tokens","steps","drafted_tokens","accepted_tokens","acceptance_rate",
//                 "tokens_per_step","drafters": {NAME: as in a result's "speculation"}}; ratios are
//                 null when there is nothing to divide by
//
// Paths and texts that are not known are null.
#pragma once

#include <vector>

#include "base/cost_point.h"
#include "json/json.h"
#include "serve/runtime.h"

namespace outrider::api {

json::Json model_status_json(const ModelStatus& status);
json::Json status_json(const RuntimeStatus& status);
json::Json stats_json(const RuntimeStatus& status);

// [{"name","kind": "model"|"lookup"|"head","state","attached","path","error","memory_bytes",
// "files": [{"path","tier": null|"static"|"dynamic","option": what a configuration calls it,
// "state","attached","error","file_bytes","memory_bytes"}]}]: the drafters that are there or could
// be. Without "attached" one takes no part; its state says why. "memory_bytes" is what it holds for
// its texts, of its files and of finished texts, and a draft model's weights; stores are mapped,
// and take no memory that counts here. Of one that can keep texts ("suffix") also "remembered":
// null where the operator has no texts remembered, else {"max_tokens","namespaces","tokens",
// "memory_bytes"}.
json::Json drafters_json(const RuntimeStatus& status);
json::Json drafter_file_json(const DrafterFileStatus& status);

// A cost curve, for charts and files: [{"width","ms"}].
json::Json costs_json(const std::vector<CostPoint>& costs);

}  // namespace outrider::api
