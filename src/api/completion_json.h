// The contract's result object: what `run --json` and completion.* carry.
//
//   {"text","tokens","seed","finish_reason","stop","logprobs","usage":{...},"timings":{...},
//    "speculation":{...}}
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
// Tested by completion_json_test.cc, which lists every field of the contract with its type.
#pragma once

#include "base/status.h"
#include "engine/request.h"
#include "json/json.h"
#include "model/exactness.h"
#include "model/kernel_use.h"

namespace outrider::api {

// `exactness` is the target's verdict, `kernels` what multiplies its weights. Besides the
// contract's fields: speculation.exactness_coverage and .exactness_reason (what the verdict is
// based on), and "error" (as below) when it ended with one.
json::Json completion_json(const Completion& completion, const Exactness& exactness,
                           const KernelUse& kernels);

// "kernels": "own" or "stock", and "kernels_reason" when stock, into an object.
void add_kernels(const KernelUse& kernels, json::Json* object);

// One drafter's counts: an object of "speculation.drafters".
json::Json drafter_stats_json(const DrafterStats& stats);

// One object of "logprobs".
json::Json logprob_json(const TokenLogprob& token);

// {"code": "invalid_argument", "message": "..."}. REQUIRES: !status.ok()
json::Json error_json(const Status& status);

// "coupled". Static storage.
std::string_view rule_name(AcceptanceRule rule);

}  // namespace outrider::api
