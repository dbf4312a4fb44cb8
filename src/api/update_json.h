// What clients are sent of a completion while it runs, and at its end.
//
//   update   {"text","tokens":[{"id","text","by"}]}: "text" ends at a character's boundary; a
//            token's own text may be a part of a character: then it shows U+FFFD here, and the
//            token has "bytes":[...] as well. With logprobs each token has "logprob" (api/
//            completion_json.h).
//   result   the contract's result object, and "ended_by": "itself"|"client"|"timeout"|"unload"|
//            "shutdown", "model": the target's path, "shifted", "truncated"
//   events   {"event":"model","role",... model status (api/status_json.h)} and
//            {"event":"completion","id","updates","finished"} with "result" in the last one
//
// Tested by update_json_test.cc.
#pragma once

#include "json/json.h"
#include "serve/runtime.h"

namespace outrider::api {

// No update for no tokens, else one: [] or [update].
json::Json updates_json(const std::vector<SaidToken>& tokens);

json::Json result_json(const CompletionResult& result);

// {"n_ctx","prompt_tokens","prompt_tokens_asked","cached_tokens","truncated","cached",
// "to_evaluate"}
json::Json prompt_stats_json(const PromptStats& stats);

json::Json event_json(const RuntimeEvent& event);

}  // namespace outrider::api
