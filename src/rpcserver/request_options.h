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
// Tested by request_options_test.cc, option by option.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "draft/base/drafter_plan.h"
#include "json/json.h"
#include "rpcserver/fields.h"
#include "serve/completion_request.h"

namespace outrider::rpcserver {

inline constexpr std::int64_t kMaxProbs = 20;  // candidates that the engine reports for a token

// The values in effect; generation_settings shows them.
struct RequestOptions {
  std::int64_t n_predict = -1;  // -1: no limit; 0: read the prompt only
  double temperature = 0.8;     // <= 0: greedy
  std::int64_t top_k = 40;      // <= 0: off
  double top_p = 0.95;
  double tfs_z = 1.0;  // nothing else is accepted, likewise n_beams
  double typical_p = 1.0;
  std::int64_t repeat_last_n = 64;  // -1: the context
  double repeat_penalty = 1.1;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  std::int64_t mirostat = 0;
  double mirostat_tau = 5.0;
  double mirostat_eta = 0.1;
  bool penalize_nl = true;
  std::int64_t n_keep = 0;            // -1: the whole prompt
  std::optional<std::uint64_t> seed;  // not given: a new one, told in generation_settings
  std::string grammar;
  std::int64_t n_probs = 0;
  bool ignore_eos = false;
  std::vector<LogitBias> logit_bias;
  std::vector<std::string> stop;  // none empty
  std::int64_t n_beams = 0;

  // New here.
  bool stream_tokens = false;  // one update a token instead of one a step
  bool speculative = false;
  DrafterPlan drafters;  // empty: automatic_drafters()
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  std::int64_t width = kAutoWidth;  // tokens of a step at most
  DraftShape draft;

  std::vector<PromptPart> prompt{std::string()};
  json::Json prompt_as_sent = "";
};

struct ParsedRequest {
  RequestOptions options;
  std::vector<std::string> warnings;
  std::optional<Refusal> refusal;  // then the rest is of no use
};

// What the cmd gave for all requests.
struct RequestDefaults {
  json::Json options = json::Json::object();  // as a request has them
  std::optional<std::int64_t> width;          // n_draft and one, when it was given

  // Takes over what `newer` says.
  void update(const RequestDefaults& newer);
};

// `request` over `defaults`: what the request does not have, or has as null, is taken from there. A
// "speculative" of true, or an object, adds to the cmd's object.
ParsedRequest parse_request(const json::Json& request, const RequestDefaults& defaults);

// The part of `cmd` that holds request options ("temp" under its request name). Those keys are
// known to `cmd` from then on, and refused there when a request could not have them.
RequestDefaults take_defaults(Fields& cmd, std::vector<std::string>& warnings);

// What the runtime is asked for. `n_ctx`: of the target.
CompletionRequest completion_request(const RequestOptions& options, std::int64_t n_ctx);

// The response field. `model`: its alias; `seed`: the one that was used; `stream`: updates are
// sent.
json::Json generation_settings(const RequestOptions& options, std::int64_t n_ctx,
                               const std::string& model, std::uint64_t seed, bool stream);

// The runtime's refusal in this API's words: options are spelled as they are here ("top_p" for
// "--top-p"), and the first one named is the field.
Refusal refusal_of(const Status& status);

}  // namespace outrider::rpcserver
