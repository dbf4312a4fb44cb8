// "timings", how long a completion took, and "prompt_progress", under llama-server's names, which
// its clients read in the answers of OpenAI's endpoints too.
//
// Tested by llama_form_test.cc, chat_form_test.cc, text_form_test.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/request.h"
#include "json/json.h"
#include "request/completion_request.h"

namespace outrider::http {

// Of an answer, whole or so far.
struct TimedCounts {
  Timings timings;
  std::int64_t cached_tokens = 0;     // of the prompt
  std::int64_t predicted_tokens = 0;  // of the answer
  std::int64_t drafted = 0;           // 0: nothing of drafts is told
  std::int64_t accepted = 0;
};

// All are numbers: a rate of nothing is 0.
json::Json timings_json(const TimedCounts& counts);
json::Json timings_json(const Completion& completion);

// What of an answer has been said, while more of it is to come.
struct SaidSoFar {
  std::int64_t n_tokens = 0;
  std::optional<double> first_ms;  // when the first one came, since the request did
};

// "timings" of such an answer, `ms` after its request came; nothing of drafts is told.
json::Json timings_so_far(const SaidSoFar& said, const PromptStats& prompt, double ms);

// "prompt_progress" while a prompt is read: {"total","cache","processed","time_ms"}. `fraction`: of
// what is not cached, 0 to 1; `ms`: since the request came.
json::Json prompt_progress_json(const PromptStats& prompt, double fraction, double ms);

}  // namespace outrider::http
