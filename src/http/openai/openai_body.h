// What the bodies of OpenAI's chat and text completions have in common, and what clients send with
// them that came from elsewhere (llama-server's names).
//
// The fields are those of completion.start (api/completion_params.h) under OpenAI's names or ours;
// beside them "model", "n", "stream", "stream_options", llama-server's "samplers" (samplers.h),
// "return_progress" and "timings_per_token", and for our page "token_sources". null counts as not
// given. A field that is not known is an error.
//
// Tested by openai_body_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "api/completion_params.h"
#include "http/completion/completion_task.h"
#include "json/json.h"
#include "request/completion_request.h"

namespace outrider::http {

// How the answer is to be sent.
struct AnswerWishes {
  std::string model;
  std::int32_t n = 1;
  bool stream = false;
  bool include_usage = false;          // a last chunk with the counts
  bool token_sources = false;          // each chunk lists its tokens, and who guessed them
  bool return_progress = false;        // chunks that say how much of the prompt is read
  bool timings_per_token = false;      // each chunk has the timings so far
  std::int32_t ping_s = kPingSeconds;  // as CompletionTask::ping_s
  bool with_given = false;             // as CompletionTask::with_given; read_continuation()
  bool older_calls = false;            // a call has OpenAI's older form (older_calls.h)
};

// OpenAI's names for our fields, and what its clients send that changes nothing here.
const api::Dialect& openai_dialect();

void read_wishes(api::JsonFields& fields, AnswerWishes& wishes);
// What of them the task carries out; the rest is its form's.
void set_wishes(const AnswerWishes& wishes, CompletionTask& task);

// Whether the last message goes on, as with llama-server: where it is the assistant's, unless
// "continue_final_message" is false; "content" or "reasoning_content" there is what of it goes on.
// "add_generation_prompt" false wants just that. The answer is told with what the message has;
// where "continue_final_message" asks for it, a stream only with "echo" true. Behind the messages
// and read_wishes().
void read_continuation(api::JsonFields& fields, AnswerWishes& wishes, CompletionRequest& request);

// All that both completions have. In front of api::finish_completion().
void read_openai_fields(api::JsonFields& fields, AnswerWishes& wishes, CompletionRequest& request);

// A chat's "reasoning_effort", for api::set_effort(); "none" where llama-server's budget for it is
// 0. An error where "reasoning", as an object, says another one.
std::string read_reasoning_effort(api::JsonFields& fields);

// "response_format": text, json_object, or json_schema, into the request's schema.
void read_response_format(api::JsonFields& fields, CompletionRequest& request);

// llama-server's "lora": an empty list only.
void refuse_adapters(api::JsonFields& fields);

// Chat's {"logprobs": true, "top_logprobs": 5} as {"logprobs": 5}, which text completions have.
void unify_logprobs(json::Json& body);

}  // namespace outrider::http
