// What the options mean to the runtime, and how they are shown.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "api/completion_json.h"
#include "rpcserver/request_options.h"

namespace outrider::rpcserver {
namespace {

using json::Json;

// In (0, 1], where 0 and less keep one token, as they did, and more than 1 is off.
float share_kept(double p) {
  return std::clamp(static_cast<float>(p), std::numeric_limits<float>::min(), 1.0f);
}

SamplingOptions sampling_options(const RequestOptions& o, std::int64_t n_ctx) {
  SamplingOptions s;
  s.temperature = std::max(0.0f, static_cast<float>(o.temperature));
  s.min_p = 0.0f;
  s.mirostat = s.temperature > 0.0f ? static_cast<std::int32_t>(o.mirostat) : 0;
  s.mirostat_tau = static_cast<float>(o.mirostat_tau);
  s.mirostat_eta = static_cast<float>(o.mirostat_eta);
  s.logit_bias = o.logit_bias;
  s.ignore_eos = o.ignore_eos;
  s.grammar = o.grammar;
  if (s.mirostat != 0) return s;  // it takes the place of the rest
  s.top_k = static_cast<std::int32_t>(o.top_k);
  s.top_p = share_kept(o.top_p);
  s.typical_p = share_kept(o.typical_p);
  const std::int64_t last_n = o.repeat_last_n < 0 ? n_ctx : o.repeat_last_n;
  s.repeat_last_n =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(last_n, 0, SamplingOptions::kMaxHistory));
  s.repeat_penalty = static_cast<float>(o.repeat_penalty);
  s.presence_penalty = static_cast<float>(o.presence_penalty);
  s.frequency_penalty = static_cast<float>(o.frequency_penalty);
  s.penalize_newline = o.penalize_nl;
  return s;
}

// 0.1f as 0.1 and not as 0.10000000149011612.
double as_written(float value) {
  std::array<char, 32> text{};
  const std::to_chars_result end = std::to_chars(text.data(), text.data() + text.size(), value);
  double number = value;
  (void)std::from_chars(text.data(), end.ptr, number);
  return number;
}

Json logit_bias_json(const std::vector<LogitBias>& biases) {
  Json list = Json::array();
  for (const LogitBias& b : biases) {
    list.push_back({b.token, std::isinf(b.bias) ? Json(false) : Json(as_written(b.bias))});
  }
  return list;
}

// Where a draft model alone guesses, its own.
std::int32_t leaves(const RequestOptions& o) {
  const bool model_alone =
      o.drafters.chains == std::vector<std::vector<std::string>>{{std::string(kDraftModelName)}};
  return model_alone && o.draft.model_branches > 0 ? o.draft.model_branches : o.draft.branches;
}

Json speculative_json(const RequestOptions& o) {
  if (!o.speculative) return false;
  Json drafters = Json::array();
  for (const std::vector<std::string>& chain : o.drafters.chains) {
    drafters.push_back(to_string(DrafterPlan{.chains = {chain}}));
  }
  return {{"drafters", std::move(drafters)},
          {"rule", api::rule_name(o.rule)},
          {"width", o.width == kAutoWidth ? Json("auto") : Json(o.width)},
          {"branches", leaves(o)},
          {"split_p", as_written(o.draft.split_p)},
          {"draft_p_min", as_written(o.draft.p_min)},
          {"draft_p_ratio", as_written(o.draft.p_ratio)}};
}

}  // namespace

CompletionRequest completion_request(const RequestOptions& o, std::int64_t n_ctx) {
  CompletionRequest request;
  request.prompt = o.prompt;
  request.prompt_texts = true;  // every answer has them
  request.sampling = sampling_options(o, n_ctx);
  request.seed = o.seed;
  // Nothing would be read for an answer of no tokens; the one token is not shown.
  request.max_tokens = o.n_predict == 0 ? 1 : static_cast<std::int32_t>(o.n_predict);
  request.stop = o.stop;
  if (o.n_probs > 0 && o.n_predict != 0) {
    request.logprobs = static_cast<std::int32_t>(o.n_probs);
    request.logprobs_after_sampler = request.sampling.temperature > 0.0f;
  }
  request.speculative = o.speculative;
  request.drafters = o.drafters;
  request.rule = o.rule;
  request.draft = o.draft;
  request.width = o.speculative ? static_cast<std::int32_t>(o.width) : 1;
  request.shift_keep = static_cast<std::int32_t>(o.n_keep);
  return request;
}

Json generation_settings(const RequestOptions& o, std::int64_t n_ctx, const std::string& model,
                         std::uint64_t seed, bool stream) {
  return {{"n_ctx", n_ctx},
          {"model", model},
          {"seed", seed},
          {"temp", o.temperature},
          {"top_k", o.top_k},
          {"top_p", o.top_p},
          {"tfs_z", o.tfs_z},
          {"typical_p", o.typical_p},
          {"repeat_last_n", o.repeat_last_n},
          {"repeat_penalty", o.repeat_penalty},
          {"presence_penalty", o.presence_penalty},
          {"frequency_penalty", o.frequency_penalty},
          {"mirostat", o.mirostat},
          {"mirostat_tau", o.mirostat_tau},
          {"mirostat_eta", o.mirostat_eta},
          {"penalize_nl", o.penalize_nl},
          {"stop", o.stop},
          {"n_predict", o.n_predict},
          {"n_keep", o.n_keep},
          {"n_beams", o.n_beams},
          {"ignore_eos", o.ignore_eos},
          {"stream", stream},
          {"stream_tokens", o.stream_tokens},
          {"logit_bias", logit_bias_json(o.logit_bias)},
          {"n_probs", o.n_probs},
          {"grammar", o.grammar},
          {"speculative", speculative_json(o)}};
}

Refusal refusal_of(const Status& status) {
  // Longer names before those that are their beginnings.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 24> kNames{{
      {"--repeat-last-n", "repeat_last_n"},
      {"--repeat-penalty", "repeat_penalty"},
      {"--presence-penalty", "presence_penalty"},
      {"--frequency-penalty", "frequency_penalty"},
      {"--temp", "temperature"},
      {"--top-k", "top_k"},
      {"--top-p", "top_p"},
      {"--typical", "typical_p"},
      {"--mirostat-ent", "mirostat_tau"},
      {"--mirostat-lr", "mirostat_eta"},
      {"--mirostat", "mirostat"},
      {"--logit-bias", "logit_bias"},
      {"--grammar", "grammar"},
      {"--ignore-eos", "ignore_eos"},
      {"--max-tokens", "n_predict"},
      {"--logprobs", "n_probs"},
      {"--stop", "stop"},
      {"--seed", "seed"},
      {"--branches", "speculative.branches"},
      {"--split-p", "speculative.split_p"},
      {"--draft-p-min", "speculative.draft_p_min"},
      {"--draft-p-ratio", "speculative.draft_p_ratio"},
      {"--drafter", "speculative.drafters"},
      {"--width", "speculative.width"},
  }};
  Refusal refusal{.error = status.message(), .field = ""};
  std::size_t first = std::string::npos;
  for (const auto& [option, field] : kNames) {
    const std::size_t found = status.message().find(option);
    // "--mirostat" is also found where "--mirostat-lr" stands; the longer one came first.
    if (found < first) {
      first = found;
      refusal.field = field;
    }
    for (std::size_t at = refusal.error.find(option); at != std::string::npos;
         at = refusal.error.find(option, at)) {
      refusal.error.replace(at, option.size(), field);
    }
  }
  return refusal;
}

}  // namespace outrider::rpcserver
