// The answers of the seed's API, field by field.
//
// Tested by session_test.cc and session_load_test.cc, with golden files (tests/golden/rpcserver).
//
// Times are milliseconds. A rate is that of the tokens after the first one, which the prompt's
// evaluation gives; with nothing to divide by it is null.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"
#include "rpcserver/request_options.h"
#include "serve/runtime.h"

namespace outrider::rpcserver {

// `answer` with "error" and, where there is one, "field".
json::Json with_error(json::Json answer, const Status& error);

// {"success":false,"error"[,"field"]}
json::Json failure(const Status& error);

// {"status":400,"error"[,"field"]}: get_completion's.
json::Json sync_failure(const Status& error);

// async_completion_poll's, when there is nothing to tell.
json::Json nothing_new();

// The field prompt_stats.
json::Json prompt_stats_json(const PromptStats& stats);

// [{"content","probs":[{"tok_str","prob"}]}] of the tokens that carry probabilities.
json::Json probabilities_json(const std::vector<SaidToken>& tokens);

// What a final response is made of.
struct FinalParts {
  const RequestOptions* options = nullptr;
  std::string model;      // the alias
  bool streamed = false;  // asynchronous
  std::string content;
  std::vector<SaidToken> tokens;  // whose probabilities are listed
};

json::Json final_response(const FinalParts& parts, const CompletionResult& result);

// `text` without a beginning of a stop string at its end, the longest there is: what the
// synchronous call does with a text that no stop string ended.
std::string drop_partial_stop(std::string text, const std::vector<std::string>& stop);

}  // namespace outrider::rpcserver
