// What a client asks for: a completion, before it is tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/types.h"
#include "draft/base/drafter.h"
#include "engine/request.h"
#include "model/sampler.h"
#include "model/vocabulary.h"

namespace outrider {

// A prompt may mix texts (in which "<|im_end|>" and the like become control tokens) and ids.
using PromptPart = std::variant<std::string, Token>;

struct CompletionRequest {
  // One of the two. Messages go through the model's own chat template.
  std::vector<PromptPart> prompt;
  std::vector<ChatMessage> messages;

  SamplingOptions sampling;
  std::optional<std::uint64_t> seed;    // not given: a random one below 2^32, told in the result
  std::int32_t max_tokens = -1;         // -1: until the model ends its text or the context is full
  std::vector<std::string> stop;        // none empty
  std::int32_t logprobs = -1;           // 0 to 20; -1: none
  bool logprobs_after_sampler = false;  // of the distribution behind the chain (engine/request.h)

  bool speculative = true;
  DrafterPlan drafters;  // of those that are there; empty: automatic_drafters()
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  DraftShape draft;  // its branches: see set_default_branches()
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
