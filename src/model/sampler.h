// Sampler: a sequence's chain of samplers, from a row of logits to the distribution to draw from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/field.h"
#include "base/status.h"
#include "base/types.h"
#include "dist/distribution.h"
#include "model/chat.h"

namespace outrider {

// Added to one token's logit before all else; minus infinity: never.
struct LogitBias {
  Token token = kNoToken;
  float bias = 0.0f;  // finite, or -infinity
};

// What a request may ask of the chain. Names, meaning, order and defaults are llama.cpp's
// (common/common.h, common/sampling.cpp). The order: grammar, logit bias, penalties, DRY,
// top-n-sigma, top-k, typical, top-p, min-p, XTC, temperature. With mirostat: grammar, logit bias,
// temperature, mirostat; the others must then be off or as they are here.
struct SamplingOptions {
  float temperature = 0.8f;  // >= 0; 0: greedy
  std::int32_t top_k = 40;   // <= 0: off
  float top_p = 0.95f;       // in [0, 1]; 0: the likeliest token only; 1: off
  float min_p = 0.05f;       // in [0, 1]; 0: off
  float typical_p = 1.0f;    // in (0, 1]; 1: off

  // Above 0, the temperature is between temperature - range (at least 0) and temperature + range:
  // ((entropy / its greatest value) ^ exponent) says where.
  float dynatemp_range = 0.0f;     // >= 0; 0: off
  float dynatemp_exponent = 1.0f;  // >= 0

  float top_n_sigma = -1.0f;  // keep what is within so many deviations of the best; <= 0: off

  // With the chance `probability`, drawn from (seed, position), all tokens at least as likely as
  // `threshold` go, except the least likely of them.
  float xtc_probability = 0.0f;  // in [0, 1]; 0: off
  float xtc_threshold = 0.1f;    // in [0, 1]; above 0.5: off

  // Of tokens among the last `repeat_last_n` of prompt and text.
  std::int32_t repeat_last_n = 64;  // 0 to kMaxHistory; 0: off
  float repeat_penalty = 1.0f;      // > 0; divides positive logits, multiplies others; 1: off
  float frequency_penalty = 0.0f;   // finite; for each time it occurs; 0: off
  float presence_penalty = 0.0f;    // finite; 0: off
  bool penalize_newline = true;     // false: these three leave the token of a line's end alone

  // multiplier * base ^ (length - allowed_length) for a token that would go on with a repetition of
  // `length` tokens, at least allowed_length; sequence breakers end repetitions.
  float dry_multiplier = 0.0f;           // >= 0; 0: off
  float dry_base = 1.75f;                // >= 1
  std::int32_t dry_allowed_length = 2;   // >= 0
  std::int32_t dry_penalty_last_n = 64;  // 0 to kMaxHistory; 0: off
  // 64 at most, 1 to 40 bytes each.
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};

  std::int32_t mirostat = 0;  // 0: off; 1, 2: the version
  float mirostat_tau = 5.0f;  // target surprise in bits, >= 0
  float mirostat_eta = 0.1f;  // learning rate, >= 0

  std::vector<LogitBias> logit_bias;  // several for a token add up; kMaxBiases at most
  bool ignore_eos = false;            // tokens that end the text are never said

  // The text keeps to one of these; empty: no constraint. The grammar is GBNF with a rule "root",
  // the schema a JSON text. With triggers, it does so from the place on where the text first says
  // one of them, the trigger itself included.
  std::string grammar;
  std::string json_schema;
  bool json_schema_strict =
      true;  // what of the schema cannot be kept to is refused, not passed over
  // 1 to 256 bytes each, at most 64; the grammar must be able to begin with each.
  std::vector<std::string> grammar_triggers;
  // What a chat template asks for, instead of these; no field of a request. Empty: nothing.
  ChatGrammar chat_grammar;

  static constexpr std::int32_t kMaxHistory = 1 << 20;  // tokens
  // All are added to every row (sampling/row_edits.h) and told with every answer of /completion.
  static constexpr std::size_t kMaxBiases = 65'536;

  bool constrained() const {
    return !grammar.empty() || !json_schema.empty() || !chat_grammar.gbnf.empty();
  }
};

// The options above, each with its name, range and help. Static storage.
std::span<const Field<SamplingOptions>> sampling_fields();

// Why a filter or penalty is refused: "cannot be used with mirostat 2, ...".
std::string cannot_be_used_with_mirostat(std::int32_t version);

// An error where `n` biases are more than kMaxBiases; validate() asks, too.
Status check_biases(std::size_t n);

// Checks the ranges and what cannot be combined. The failure is about the field ("top_p"). Which
// token ids there are, and whether a grammar can be read, are make_sampler's to check.
Status validate(const SamplingOptions& options);

// The distribution depends on the row and on the tokens accepted so far, never on randomness: the
// choice is the acceptance rule's. Not thread safe; one sequence has its own.
class Sampler {
 public:
  virtual ~Sampler() = default;

  // A text begins with `prompt`: history for penalties and the like (not for a grammar, which is
  // about what is said), as llama-server has it. `seed` is the request's. At most once, before the
  // other calls; without it the text begins empty, with seed 0.
  virtual void begin(std::span<const Token> /*prompt*/, std::uint64_t /*seed*/) {}

  // The distribution for `logits`: [n], n at most the vocabulary's size. A draft model's row may be
  // shorter than the target's; what the options say about ids beyond its end is passed over. The
  // view points into the sampler (or into `logits`) and is valid until the next call. Does not
  // change what later calls return; empty when no token is possible.
  virtual Distribution apply(std::span<const float> logits) = 0;

  // `token` has become part of the text. The last apply() before it was for the row that `token`
  // was chosen from (mirostat learns from that row; the others do not mind).
  virtual void accept(Token token) = 0;

  // Not ok when what was accepted, or a row, is more than the chain can go on from (a grammar that
  // the text does not keep to). apply() is then empty for good: a constraint never silently ends.
  virtual Status status() const { return Status(); }

  // True when accept() may change what apply() returns. Where it does not, a clone is never needed.
  virtual bool has_state() const = 0;

  // True when apply() leaves the likeliest token for being that (temperature 0), so that the row
  // says more about the runners-up than the distribution does.
  virtual bool greedy() const { return false; }

  // A copy with the same state, which shares nothing that changes.
  virtual std::unique_ptr<Sampler> clone() const = 0;
};

}  // namespace outrider
