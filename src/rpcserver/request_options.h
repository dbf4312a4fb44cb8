// What a request may say: the seed's options with the seed's defaults, which are llama.cpp's of
// October 2023 and not today's (repeat_penalty was 1.1, and there was no min_p).
//
// Three answers to an option, never silence: it is honoured; it is refused by name, because the
// text would not be what was asked for (tfs_z, n_beams, a wrong kind of value); or it has no effect
// and a warning says so (unknown keys, penalties with mirostat, n_probs above 20).
//
// Where the seed's sampler took values that today's refuse, they mean what they meant: a
// temperature below 0 is greedy, top_p above 1 is off, 0 keeps one token, repeat_last_n -1 is the
// whole context.
//
// Options of one value are a table (seed_options.h). Tested by request_options_test.cc, option by
// option.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json/json.h"
#include "request/completion_request.h"
#include "rpcserver/seed_object.h"
#include "rpcserver/seed_options.h"

namespace outrider::rpcserver {

// The values in effect.
struct RequestOptions {
  json::Json values;                  // of seed_options(), by key
  std::optional<std::uint64_t> seed;  // not given: a new one, told in generation_settings
  // What needs no more than its own name here: speculation, the prompt, logit_bias, stop.
  CompletionRequest request;
  json::Json prompt_as_sent = "";
  std::vector<std::string> warnings;  // what has no effect

  std::int64_t n_predict() const { return values["n_predict"]; }  // -1: no limit; 0: only read
  std::int64_t n_probs() const { return values["n_probs"]; }      // 0 to kMaxLogprobs
  bool stream_tokens() const { return values["stream_tokens"]; }  // one update a token, not a step
};

// What the cmd gave for all requests.
struct RequestDefaults {
  json::Json options = json::Json::object();  // as a request has them
  std::optional<std::int32_t> width;          // n_draft and one, when it was given

  // Takes over what `newer` says.
  void update(const RequestDefaults& newer);
};

// `request`, which is an object, over `defaults`: what it does not have, or has as null, is taken
// from there. A "speculative" of true, or an object, adds to the cmd's object. Errors:
// kInvalidArgument with the field.
Result<RequestOptions> parse_request(const json::Json& request, const RequestDefaults& defaults);

// The part of `cmd` that holds request options ("temp" under its request name). Those keys are
// known to `cmd` from then on, and refused there when a request could not have them.
RequestDefaults take_defaults(JsonFields& cmd, std::vector<std::string>& warnings);

// What the runtime is asked for. `n_ctx`: of the target.
CompletionRequest completion_request(const RequestOptions& options, std::int64_t n_ctx);

// The response field. `model`: its alias; `seed`: the one that was used; `stream`: updates are
// sent.
json::Json generation_settings(const RequestOptions& options, std::int64_t n_ctx,
                               const std::string& model, std::uint64_t seed, bool stream);

// The runtime's refusal, with its field as this API names it: "temperature" for temp.
Status refusal_of(const Status& status);

}  // namespace outrider::rpcserver
