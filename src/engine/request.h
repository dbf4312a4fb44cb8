// What goes into the engine and what comes out of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/request_limits.h"
#include "base/status.h"
#include "base/types.h"
#include "draft/base/drafter.h"
#include "draft/base/drafter_plan.h"
#include "model/exactness.h"
#include "model/sampler.h"
#include "verify/acceptance_rule.h"

namespace outrider {

using RequestId = std::uint64_t;

struct Request {
  std::vector<Token> prompt;  // not empty; ids of the target's vocabulary
  // Not null, freshly made. The one chain for both models: draft distributions go through the same
  // samplers as the target's, in a copy where they have state.
  std::unique_ptr<Sampler> sampler;
  std::uint64_t seed = 0;  // of the noise; the same seed gives the same text
  // -1: until the context is full; else at least 0. With 0 the prompt is read, but for its last
  // token, which every request reads with its first step, and kept for those that begin alike.
  std::int32_t max_tokens = -1;
  std::vector<std::string> stop;  // none empty
  // Tokens whose text is not their piece: control tokens that the answer is to show.
  std::map<Token, std::string> shown;
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  DraftShape draft;         // for drafters that can branch
  bool speculative = true;  // false: drafters are not asked
  // Most tokens of a target step; 1: no speculation; kAutoWidth: the planner chooses, step by step.
  // It looks at all that was drafted, which the rules that draw must not (dist/draws.h): with them,
  // kAutoWidth is Planner::kMeasuringWidth.
  std::int32_t width = 4;
  std::string speculation_off_reason;  // why it is not speculative, for the result
  std::int32_t logprobs =
      -1;  // likeliest tokens to report with each token, 0 to kMaxLogprobs; -1: nothing
  // False: of the raw row. True: of what the sampler chain leaves of it, which at temperature 0 is
  // one token alone.
  bool logprobs_after_sampler = false;
  // Which drafters may guess, of those that are there when it is added.
  DrafterPlan drafters;
  // Whose earlier texts drafters may look at (DraftRequest::name_space); empty: nobody's.
  std::string name_space;
  // What to do when the context is full: forget half of what lies behind the first `shift_keep`
  // tokens of the text, read the rest again and go on. -1: the text ends there (kLength).
  std::int32_t shift_keep = -1;
};

enum class FinishReason { kStop, kLength, kCancelled, kError };

// "stop", "length", "cancelled", "error". Static storage.
std::string_view finish_reason_name(FinishReason reason);

// Who guessed a token: the drafter's index in the engine, or the target itself.
inline constexpr std::int32_t kByTarget = -1;

struct Piece {
  Token id = kNoToken;
  std::string text;  // the bytes it adds; "" for control tokens that are not Request::shown
  std::int32_t by = kByTarget;  // whose accepted guess it is (the first drafter that proposed it)
  bool cut = false;             // a stop string took all its bytes: nothing of it is in the text
};

struct RankedToken {
  Token id = kNoToken;
  std::string text;      // the bytes it adds; "" for control tokens that are not Request::shown
  double logprob = 0.0;  // natural logarithm of its probability; may be minus infinity
};

// A token of the text and its log-probability: of the target's own row that the token was chosen
// from, BEFORE the sampler chain (softmax of the raw logits), as OpenAI's API has it. So a token
// that the chain would not cut off, mask or bias has the same value whatever the options are. With
// logprobs_after_sampler it is of the distribution behind the chain, from which it was drawn.
struct TokenLogprob {
  RankedToken chosen;
  std::vector<RankedToken> top;  // the likeliest, best first, up to Request::logprobs
};

// Of a request so far: SpeculationStats' counts of the same names.
struct Guesses {
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
};

// What a step made of one request. Texts of pieces joined end at character boundaries, except where
// the model itself wrote invalid UTF-8.
struct Update {
  RequestId id = 0;
  std::vector<Piece> pieces;
  std::vector<TokenLogprob> logprobs;  // [pieces], or empty when they were not asked for
  Guesses guesses;
  bool finished = false;  // the completion is ready
};

struct DrafterStats {
  std::string name;
  std::int64_t calls = 0;            // steps in which it was asked
  std::int64_t drafts = 0;           // of these, how often it proposed anything
  std::int64_t accepted_drafts = 0;  // of these, how often one of its nodes was accepted
  std::int64_t drafted = 0;          // its nodes that were sent to the target
  std::int64_t accepted = 0;         // of these, on the accepted path
  std::int64_t foregone = 0;         // proposed, not sent, and then said by the target
  double draft_ms = 0.0;
  double accept_ms = 0.0;

  // The counts of another request with this drafter.
  void add(const DrafterStats& other) {
    calls += other.calls;
    drafts += other.drafts;
    accepted_drafts += other.accepted_drafts;
    drafted += other.drafted;
    accepted += other.accepted;
    foregone += other.foregone;
    draft_ms += other.draft_ms;
    accept_ms += other.accept_ms;
  }
};

// What was sent at one depth of a request's trees (a child of the root has depth 1).
struct DepthStats {
  std::int64_t drafted = 0;   // nodes
  std::int64_t tested = 0;    // steps that sent a guess behind a path that was accepted up to here
  std::int64_t accepted = 0;  // of these, where such a guess was right

  // The same depth's of another request.
  void add(const DepthStats& other) {
    drafted += other.drafted;
    tested += other.tested;
    accepted += other.accepted;
  }
};

// Counts follow shared definitions (docs/glossary.md): the target's own token of a step is never
// drafted or accepted; emitted = accepted + steps, less what a stop cut off.
struct SpeculationStats {
  bool enabled = false;
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  // Why it is, or went, off, or goes without a drafter or a width that was asked for; empty:
  // nothing to say.
  std::string reason;
  std::int64_t steps = 0;  // target evaluations that gave at least one token
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::int64_t emitted = 0;
  // Times are of the steps after the first token, like Timings::predicted_ms, except:
  double draft_prompt_ms = 0.0;  // drafting for the first token: drafters read the prompt then
  double draft_ms = 0.0;
  double verify_ms = 0.0;  // target passes
  double sample_ms = 0.0;  // samplers and the walk
  double plan_ms = 0.0;
  // What the passes for as many tokens would have taken without guesses, one token of each request
  // in a pass: of each pass the share that the cost curve gives a plain one. So a machine that was
  // busy meanwhile was so for both. Not given: no pass as narrow was ever seen.
  std::optional<double> plain_ms = 0.0;
  std::vector<DrafterStats> drafters;
  std::int32_t first_width = 0;  // of the step that gave the first token
  // Of the `steps`, those of each width, fillers included: [width], as long as the widest.
  std::vector<std::int64_t> steps_by_width;
  std::vector<DepthStats> by_depth;  // [depth - 1], as long as the deepest; without fillers
};

// What holds of a text that was made as `stats` say, of a target of which `target` holds. Whatever
// the backend can, the rules that draw keep the distribution, not the text. The coverage, which is
// the probe's, stays.
Exactness exactness_of(const SpeculationStats& stats, const Exactness& target);

struct Timings {
  double prompt_ms = 0.0;       // from the first step to the first token
  double predicted_ms = 0.0;    // from the first token to the last
  double first_token_ms = 0.0;  // from add() to the first token
  std::int64_t prompt_tokens_evaluated = 0;
  std::int64_t predicted_after_first = 0;  // tokens said during predicted_ms
};

struct Completion {
  RequestId id = 0;
  std::string text;           // without what a stop string cut off
  std::vector<Token> tokens;  // all that the target said, the end token and a stop's included
  FinishReason finish = FinishReason::kStop;
  std::string stop;  // the stop string that ended it, or empty
  Status error;      // for kError
  std::uint64_t seed = 0;
  std::vector<TokenLogprob> logprobs;  // [tokens], or empty when they were not asked for
  bool has_logprobs = false;
  std::int64_t shifts = 0;  // how often the context was full and was shifted
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // of these, read for an earlier text
  Timings timings;
  SpeculationStats speculation;
};

}  // namespace outrider
