// How llama-server answers /completion and /infill.
//
// Whole: {"index","content","tokens","stop","model","tokens_predicted","tokens_evaluated",
// "tokens_cached","generation_settings","prompt","has_new_line","truncated","stop_type",
// "stopping_word","timings","completion_probabilities"}, and what we add: "seed" and "speculation"
// (api/completion_json.h); an array of these for several answers. Streamed: an event for each token
// (or for as many as make whole characters), {"index","content","tokens","stop": false,
// "tokens_predicted","tokens_evaluated"}, and a last one for each answer, as above, without its
// text. "id_slot" is -1: which slot serves a request is not the client's to know.
//
// tokens_cached: of the prompt, reused from an earlier text. completion_probabilities: "logprob"
// and "top_logprobs", or "prob" and "top_probs" behind the samplers, without those of 0; of the
// answer's tokens, not of those that a stop text took all of.
//
// Tested by llama_form_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "http/completion/answer_form.h"
#include "json/json.h"

namespace outrider::http {

// What the client wants of the answers' form.
struct LlamaWishes {
  bool return_tokens = false;
  bool timings_per_token = false;
  bool return_progress = false;
  bool after_sampler = false;       // probabilities behind the samplers
  std::int64_t max_predict_ms = 0;  // end a line when this time has passed since the first token
  // The answer ends in front of the first further line that is indented by fewer blanks and tabs.
  std::int64_t n_indent = 0;
  std::vector<std::string> fields;  // "content", "generation_settings/seed"; empty: all
};

// What the answers are answers to.
struct LlamaAsked {
  json::Json settings;               // llama_settings(); the seed is each answer's own
  std::vector<std::string> prompts;  // as they are read, with their control tokens
  std::int32_t n = 1;                // answers to each
};

// `now`: the clock of max_predict_ms and of timings before the end.
std::unique_ptr<AnswerForm> make_llama_form(LlamaWishes wishes, LlamaAsked asked,
                                            NowMs now = steady_ms);

}  // namespace outrider::http
