// What a client asks for: a completion, before it is tokens. The tables of its fields, below, serve
// every interface: JSON, the command, HTTP.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/field.h"
#include "base/request_limits.h"
#include "base/status.h"
#include "base/types.h"
#include "draft/base/drafter.h"
#include "draft/base/drafter_plan.h"
#include "model/chat.h"
#include "model/exactness.h"
#include "model/sampler.h"
#include "model/vocabulary.h"
#include "verify/acceptance_rule.h"

namespace outrider {

// A prompt may mix texts (in which "<|im_end|>" and the like become control tokens) and ids.
using PromptPart = std::variant<std::string, Token>;

// Ranges and meanings: completion_request.cc, sampling_fields(), shape_fields().
struct CompletionRequest {
  // One of the two. Messages go through the model's own chat template.
  std::vector<PromptPart> prompt;
  std::vector<ChatMessage> messages;
  ChatOptions chat;  // with messages; its json_schema is not used: sampling.json_schema is

  SamplingOptions sampling;
  std::int64_t seed = -1;               // -1: a random one below 2^32, told in the result
  std::int32_t max_tokens = -1;         // -1: until the model ends its text or the context is full
  std::vector<std::string> stop;        // none empty
  std::int32_t logprobs = -1;           // 0 to kMaxLogprobs; -1: none
  bool logprobs_after_sampler = false;  // of the distribution behind the chain (engine/request.h)

  bool speculative = true;
  DrafterPlan drafters;  // of those that are there; empty: automatic_drafters()
  // They were named for whatever target answers, as a server's setting or a command's: prediction
  // layers that it lacks are no error (check_own_head()). set_drafters() says false.
  bool drafters_by_default = false;
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  DraftShape draft{.branches = kBranchesByWidth};
  // Most tokens of one target step, >= 1; 1: no speculation; kAutoWidth: the planner chooses.
  std::int32_t width = kAutoWidth;

  // Whose request it is, for RuntimeOptions::remember_tokens: 1 to 64 bytes without control
  // characters. What is said is remembered for later requests of the same namespace, and the
  // suffix drafter looks at what was said to earlier ones. Not given: neither.
  std::optional<std::string> name_space;

  // Whether PromptStats' texts are wanted: all of the prompt is detokenised for them.
  bool prompt_texts = false;

  // Milliseconds from start() on, >= 1, after which it ends with what it has, as if cancelled; 0:
  // none.
  std::int64_t timeout_ms = 0;

  // When the context is full, drop half of what lies behind the first `keep` tokens, read the rest
  // again and go on (-1: keep the whole prompt); and cut prompts that are too long in the same way.
  // Not given: a full context ends the text, and a prompt that is too long is an error.
  std::optional<std::int32_t> shift_keep;
};

inline constexpr std::size_t kMaxMessages = 10'000;

// The fields that are not of a struct inside it. Static storage.
std::span<const Field<CompletionRequest>> prompt_fields();
std::span<const Field<ChatOptions>> chat_fields();
std::span<const Field<CompletionRequest>> output_fields();
std::span<const Field<CompletionRequest>> speculation_fields();

// Calls visitor(fields, object) for each of the tables, with the part of `request` that it is
// about, in the order of documentation. visit_settings: without what is to be answered.
template <typename Request, typename Visitor>
void visit_settings(Request& request, Visitor&& visitor) {
  visitor(output_fields(), request);
  visitor(sampling_fields(), request.sampling);
  visitor(speculation_fields(), request);
  visitor(shape_fields(), request.draft);
}
template <typename Request, typename Visitor>
void visit_request(Request& request, Visitor&& visitor) {
  visitor(prompt_fields(), request);
  visitor(chat_fields(), request.chat);
  visit_settings(request, visitor);
}

// Who guesses: "auto", "none", or names as parse_drafter_plan() has them. Errors: kInvalidArgument,
// about `name`, with the request as it was.
Status set_drafters(CompletionRequest& request, std::string_view expression,
                    const std::string& name = "drafter");

// A bias as the command takes it, as llama.cpp's: "15043+1", "15043-inf". Nothing: it is none.
std::optional<LogitBias> parse_logit_bias(std::string_view text);

// The width that a target is opened for, whether it is used or not, so that its settings do not
// depend on that: the request's; where the planner chooses kOpenedWidth, with plain decoding 4.
std::int32_t opened_width(const CompletionRequest& request);

// The seed to use: the one given, or a random one below 2^32 (any JSON reader can hold that).
std::uint64_t chosen_seed(const CompletionRequest& request);

// An error about `field` where `n` are more than one list may have, kMaxListed. `what` they are:
// "token ids".
Status check_listed(std::size_t n, const std::string& field, std::string_view what);
// Of a text whose tokens are to be told with their pieces, which take a hundred times as much
// memory as their ids.
inline constexpr std::string_view kListedWithPieces =
    "tokens, which are to be listed with their pieces (with_pieces)";
// The same of a prompt's texts and ids. To be asked before they become parts; validate() asks, too.
Status check_prompt_parts(std::size_t n, const std::string& name = "prompt");

// Every range, and what cannot be combined. What depends on the model (which ids there are, whether
// the grammar can be read, whether the prompt fits) is Runtime::start's to check. Errors:
// kInvalidArgument, about the field.
Status validate(const CompletionRequest& request);
// The same without a look at the prompt.
Status validate_settings(const CompletionRequest& request);
// Whether a target that was opened with `exact` may answer by the request's rule: with kOn by
// kCoupled only, since the others keep the distribution, not the text. Errors: kInvalidArgument,
// about "rule".
Status check_rule(const CompletionRequest& request, ExactMode exact);
// Whether a target may answer that has no prediction layers, because of `why_none` (empty: it has
// them). A draft may still come, prediction layers come with the target or never: a request that
// names them is wrong then, but for a default: of that the result says why. Errors:
// kInvalidArgument, about "drafter".
Status check_own_head(const CompletionRequest& request, std::string_view why_none);

// What became of the prompt.
struct PromptStats {
  std::int64_t n_ctx = 0;           // most tokens of prompt and answer together
  std::int64_t n_tokens = 0;        // of the prompt, as it will be read
  std::int64_t n_tokens_asked = 0;  // before it was cut
  std::int64_t n_cached = 0;        // of it, likely to be reused from an earlier text
  std::string cached;               // the text of these, where asked for
  std::string to_evaluate;          // the text of the others, likewise
  bool truncated() const { return n_tokens < n_tokens_asked; }
};

}  // namespace outrider
