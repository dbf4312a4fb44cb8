// A completion as JSON: the contract's result object, which `run --json` and completion.* carry,
// and what clients are sent while it runs, and at its end.
//
//   {"text","tokens","seed","finish_reason","stop","logprobs","usage":{...},"timings":{...},
//    "speculation":{...}}
//
//   update   {"text","tokens":[{"id","text","by"}]}: "text" ends at a character's boundary; a
//            token's own text may be a part of a character: then it shows U+FFFD here, and the
//            token has "bytes":[...] as well. With logprobs each token has "logprob"
//   result   the contract's result object, and "ended_by": "itself"|"client"|"timeout"|"unload"|
//            "shutdown", "model": the target's path, "shifted", "truncated"
//   events   {"event":"model","role",... model status (api/status_json.h)} and
//            {"event":"completion","id","updates","finished"} with "result" in the last one
//
// Conventions. Times are milliseconds, rates are per second. A ratio whose denominator is zero
// (nothing was drafted, no second token was said) is null: there is nothing to report. Text that is
// not valid UTF-8 stays as it is here and gets U+FFFD when it is encoded (json/json.h).
//
// logprobs: null, or an array with one object a token: {"id","token","bytes","logprob",
// "top_logprobs":[{"id","token","bytes","logprob"}]}, of the target's distribution before the
// sampler chain. "bytes" are the token's bytes, 0 to 255 each, as OpenAI's API has them: a token
// may hold a part of a character only, which "token" cannot show; joined, they are the tokens'
// text. null for a control token, which has none. A logprob of minus infinity is
// null.
//
// Tested by completion_json_test.cc, which lists every field of the contract with its type, and
// update_json_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/request.h"
#include "json/json.h"
#include "model/exactness.h"
#include "model/kernel_use.h"
#include "serve/runtime.h"

namespace outrider::api {

// `exactness` is the target's verdict, `kernels` what multiplies its weights. Besides the
// contract's fields: speculation.exactness_coverage and .exactness_reason (what the verdict is
// based on), and "error" (as below) when it ended with one.
json::Json completion_json(const Completion& completion, const Exactness& exactness,
                           const KernelUse& kernels);

// "kernels": "own" or "stock", and "kernels_reason" when stock, into an object.
void add_kernels(const KernelUse& kernels, json::Json* object);

// "speculation" of that, alone.
json::Json speculation_json(const SpeculationStats& stats, const Exactness& exactness);

// One drafter's counts: an object of "speculation.drafters".
json::Json drafter_stats_json(const DrafterStats& stats);

// One object of "logprobs".
json::Json logprob_json(const TokenLogprob& token);

// {"code": "invalid_argument", "message": "..."}; ok: null.
json::Json error_or_null(const Status& status);

inline json::Json text_or_null(const std::string& text) {
  return text.empty() ? json::Json() : json::Json(text);
}

// 0 to 255 each.
json::Json bytes_json(const std::string& text);

// A token's piece: a string, or its bytes where these are no whole characters, which a string could
// not show.
json::Json piece_json(std::string_view piece);

// null where there is nothing to divide by.
template <typename Part, typename Whole>
json::Json ratio(Part part, Whole whole) {
  const bool any = whole > 0;
  return any ? json::Json(static_cast<double>(part) / static_cast<double>(whole)) : json::Json();
}

// null for none.
inline json::Json per_second(std::int64_t count, double ms) {
  return count > 0 ? ratio(1000.0 * static_cast<double>(count), ms) : json::Json();
}

// No update for no tokens, else one: [] or [update].
json::Json updates_json(const std::vector<SaidToken>& tokens);

json::Json result_json(const CompletionResult& result);
// "speculation" of that, alone: with what was remembered of the text.
json::Json speculation_json(const CompletionResult& result);

// {"n_ctx","prompt_tokens","prompt_tokens_asked","cached_tokens","truncated"}
json::Json prompt_stats_json(const PromptStats& stats);

json::Json event_json(const RuntimeEvent& event);

}  // namespace outrider::api
