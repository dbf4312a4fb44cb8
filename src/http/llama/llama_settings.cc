#include "http/llama/llama_settings.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "http/openai/openai_body.h"
#include "http/openai/samplers.h"
#include "model/sampler.h"

namespace outrider::http {
namespace {

using json::Json;
using Options = SamplingOptions;

// Which cache is used, and which slot, is the server's to choose: a text is the same either way.
// The fields of speculation have had no effect in llama-server for a while; "speculative" is ours.
constexpr std::string_view kIgnored[] = {
    "cache_prompt",      "id_slot",           "n_cache_reuse",
    "t_max_prompt_ms",   "verbose",           "backend_sampling",
    "adaptive_decay",    "reasoning_format",  "user",
    "speculative.n_max", "speculative.n_min", "speculative.p_min",
    "speculative.type"};

std::string_view llama_name(std::string_view ours) {
  for (const api::Dialect::Name& name : openai_dialect().names) {
    if (name.ours == ours) return name.theirs;
  }
  return ours;
}

Json value_json(const Field<Options>& field, const Options& options) {
  return visit_field(field, options, [](const auto& value) -> Json {
    if constexpr (std::is_constructible_v<Json, decltype(value)>) {
      return Json(value);
    } else {
      return {};  // ByHand
    }
  });
}

Json biases_json(const Options& options, const Vocabulary& vocabulary) {
  Json list = Json::array();
  const auto add = [&list](Token token, float bias) {
    list.push_back({{"token", token}, {"bias", std::isfinite(bias) ? Json(bias) : Json()}});
  };
  for (const LogitBias& bias : options.logit_bias) add(bias.token, bias.bias);
  for (Token token = 0; options.ignore_eos && token < vocabulary.size(); ++token) {
    if (vocabulary.is_end_of_generation(token)) add(token, -INFINITY);
  }
  return list;
}

}  // namespace

const api::Dialect& llama_dialect() {
  static const api::Dialect kDialect{
      .names = openai_dialect().names, .ignored = kIgnored, .null_is_absent = true};
  return kDialect;
}

Json llama_settings(const CompletionRequest& request, const Vocabulary& vocabulary,
                    std::span<const std::string_view> samplers) {
  const Options& o = request.sampling;
  Json settings = {{"seed", request.seed}};
  for (const Field<Options>& field : sampling_fields()) {
    Json value = value_json(field, o);
    if (!value.is_null()) settings[std::string(llama_name(field.name))] = std::move(value);
  }
  settings["logit_bias"] = biases_json(o, vocabulary);
  settings["json_schema"] = o.json_schema;
  settings["stop"] = request.stop;
  settings["max_tokens"] = request.max_tokens;
  settings["n_predict"] = request.max_tokens;
  settings["n_keep"] = request.shift_keep.value_or(0);
  settings["n_discard"] = 0;
  settings["n_probs"] = std::max(request.logprobs, 0);
  settings["min_keep"] = 0;
  settings["post_sampling_probs"] = request.logprobs_after_sampler;
  settings["adaptive_target"] = -1.0;  // a sampler that is not here: off
  settings["adaptive_decay"] = 0.0;
  Json names = Json::array();
  for (const std::string_view name : samplers) names.push_back(std::string(name));
  settings["samplers"] = std::move(names);
  settings["speculative"] = request.speculative;
  settings["lora"] = Json::array();
  return settings;
}

std::string spelled_text(const std::vector<Token>& tokens, const Vocabulary& vocabulary) {
  std::string text;
  for (const Token token : tokens) text += vocabulary.spelled(token);
  return text;
}

}  // namespace outrider::http
