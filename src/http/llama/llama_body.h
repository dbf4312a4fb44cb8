// POST /completion (and /completions): llama-server's own API, its body. Answers: llama_form.h.
//
// The fields are those of OpenAI's completions here (openai_body.h) under llama-server's names, and
// "return_tokens", "timings_per_token", "return_progress", "post_sampling_probs",
// "response_fields", "t_max_predict_ms", "n_indent", "samplers". "n_probs" is of each token, 0:
// none. "logit_bias" may name texts, whose tokens then all have the bias. "n_keep" counts where the
// context is shifted (--shift-keep). Of what llama-server has and this server has not, the value
// that switches it off is taken, and any other refused ("lora", "min_keep", "n_discard", ...).
//
//   prompt   a string; ids; ids and strings mixed; {"prompt_string"}; or an array of several of
//            these, each with an answer of its own
//
// Tested by llama_body_test.cc.
#pragma once

#include <vector>

#include "base/status.h"
#include "http/access/server_options.h"
#include "http/completion/completion_task.h"
#include "json/json.h"
#include "serve/loader.h"

namespace outrider::http {

// Errors: kInvalidArgument with the field; kUnsupported for what is not text.
Result<CompletionTask> read_llama_task(json::Json body, const ServerOptions& options,
                                       const Target& target);

// The same for prompts that are read already; `body` is without them.
Result<CompletionTask> llama_task(json::Json body, const ServerOptions& options,
                                  const Target& target,
                                  const std::vector<std::vector<Token>>& prompts);

// How texts of a prompt become tokens.
struct TextReading {
  bool add_special = false;   // with BOS and the like, in front of a text
  bool parse_special = true;  // control tokens may be spelled out
  bool joins_texts = false;   // an array of nothing but texts is one prompt, too
};

// One prompt of a body, of the forms above but the last: `name` is its place for messages. As
// tokens.
Result<std::vector<Token>> read_one_prompt(const json::Json& prompt, const std::string& name,
                                           const TextReading& reading,
                                           const Vocabulary& vocabulary);

}  // namespace outrider::http
