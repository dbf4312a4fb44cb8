#include "http/llama/llama_settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <vector>

#include "http/openai/openai_body.h"

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

// llama.cpp's samplers in the order in which they work, each with its letter and the fields that
// switch it off, as their table has it; empty: no further one.
struct NamedSampler {
  std::string_view name;
  char letter;
  std::array<std::string_view, 3> fields;
};
constexpr NamedSampler kSamplers[] = {
    {"penalties", 'e', {"repeat_penalty", "frequency_penalty", "presence_penalty"}},
    {"dry", 'd', {"dry_multiplier"}},
    {"top_n_sigma", 's', {"top_n_sigma"}},
    {"top_k", 'k', {"top_k"}},
    {"typ_p", 'y', {"typical"}},
    {"top_p", 'p', {"top_p"}},
    {"min_p", 'm', {"min_p"}},
    {"xtc", 'x', {"xtc_probability"}},
    {"temperature", 't', {"dynatemp_range"}},
};

// To what it is without being set, where that is off.
void switch_off(const Field<Options>& field, Options& options) {
  static const Options kDefaults;
  const auto off = [&field](double usual) {
    return field.off.covers(usual) ? usual : field.off.value;
  };
  if (const auto* at = std::get_if<float Options::*>(&field.place)) {
    options.*(*at) = static_cast<float>(off(kDefaults.*(*at)));
  }
  if (const auto* at = std::get_if<std::int32_t Options::*>(&field.place)) {
    options.*(*at) = static_cast<std::int32_t>(off(kDefaults.*(*at)));
  }
}

std::string sampler_names() {
  std::string names;
  for (const NamedSampler& sampler : kSamplers) {
    names.append(names.empty() ? "" : ", ").append(sampler.name);
  }
  return names;
}

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

// The names of `given`, each as an index of kSamplers; what is none is an error of `fields`.
std::vector<std::size_t> sampler_order(api::JsonFields& fields, const Json& given) {
  std::vector<std::string> names;
  if (given.is_string()) {
    for (const char letter : given.get_ref<const std::string&>()) names.emplace_back(1, letter);
  } else {
    fields.texts("samplers", names);
  }
  std::vector<std::size_t> order;
  for (const std::string& name : names) {
    std::size_t i = 0;
    while (i < std::size(kSamplers) && kSamplers[i].name != name &&
           (name.size() != 1 || kSamplers[i].letter != name[0])) {
      ++i;
    }
    if (i < std::size(kSamplers)) {
      order.push_back(i);
    } else {
      fields.fail("samplers", "samplers names " + api::shown(Json(name)) +
                                  ", which is not among those here: " + sampler_names());
    }
  }
  return order;
}

}  // namespace

const api::Dialect& llama_dialect() {
  static const api::Dialect kDialect{
      .names = openai_dialect().names, .ignored = kIgnored, .null_is_absent = true};
  return kDialect;
}

Json llama_settings(const CompletionRequest& request, const Vocabulary& vocabulary) {
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
  Json samplers = Json::array();
  for (const NamedSampler& sampler : kSamplers) samplers.push_back(std::string(sampler.name));
  settings["samplers"] = std::move(samplers);
  settings["speculative"] = request.speculative;
  settings["lora"] = Json::array();
  return settings;
}

void read_samplers(api::JsonFields& fields, Options& options) {
  const Json* given = fields.any("samplers");
  if (given == nullptr) return;
  const std::vector<std::size_t> order = sampler_order(fields, *given);
  if (!fields.ok()) return;
  // Those that are out of order, where they are all on, would give another distribution.
  if (std::adjacent_find(order.begin(), order.end(), std::greater_equal<>()) != order.end()) {
    return fields.fail(
        "samplers",
        "samplers must be named once, in the order in which they work here: " + sampler_names());
  }
  for (std::size_t i = 0; i < std::size(kSamplers); ++i) {
    if (std::find(order.begin(), order.end(), i) != order.end()) continue;
    for (const std::string_view name : kSamplers[i].fields) {
      if (!name.empty()) switch_off(field_named(sampling_fields(), name), options);
    }
    // Its table cannot say it: 0 is greedy.
    if (kSamplers[i].name == "temperature") options.temperature = 1.0f;
  }
}

std::string spelled_text(const std::vector<Token>& tokens, const Vocabulary& vocabulary) {
  std::string text;
  for (const Token token : tokens) text += vocabulary.spelled(token);
  return text;
}

}  // namespace outrider::http
