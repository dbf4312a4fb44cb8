#include "rpcserver/request_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "api/completion_params.h"
#include "base/list_of.h"

namespace outrider::rpcserver {
namespace {

using json::Json;

// What a cmd may give for all requests, beside seed_options().
constexpr std::array<std::string_view, 6> kCmdKeys{"seed", "stream",  "logit_bias",
                                                   "stop", "__debug", "speculative"};

void read_prompt(JsonFields& fields, RequestOptions& o) {
  const Json* prompt = fields.any("prompt");
  if (prompt == nullptr) return;
  o.prompt_as_sent = *prompt;
  o.request.prompt.clear();
  api::read_prompt(fields, o.request);
}

// Pairs that mean nothing were passed over by the seed; here a warning says which.
void read_logit_bias(JsonFields& fields, RequestOptions& o, std::vector<std::string>& warnings) {
  const Json* biases = fields.any("logit_bias");
  if (biases == nullptr) return;
  const std::string wanted = "[token id, number or false]";
  if (!biases->is_array())
    return fields.refuse_kind("logit_bias", *biases, "an array of " + wanted);
  for (std::size_t i = 0; i < biases->size(); ++i) {
    const std::optional<LogitBias> bias = api::as_logit_bias((*biases)[i]);
    if (bias) {
      o.request.sampling.logit_bias.push_back(*bias);
    } else {
      warnings.push_back(api::item_name("logit_bias", i) + " is not " + wanted +
                         " and has no effect");
    }
  }
}

// Names, or fall-back chains of them ("suffix/draft-model"). Whether one is there is the runtime's
// to say, in the result.
void read_drafters(JsonFields& fields, RequestOptions& o) {
  std::vector<std::string> names;
  fields.texts("drafters", names);
  if (!fields.ok() || fields.any("drafters") == nullptr) return;
  fields.fail(set_drafters(o.request, names.empty() ? "auto" : joined(names, ","), "drafters"));
}

// true, false, or an object, which means true.
void read_speculative(JsonFields& fields, RequestOptions& o, std::vector<std::string>& warnings) {
  CompletionRequest& r = o.request;
  const Json* value = fields.any("speculative");
  if (value == nullptr) return;
  if (value->is_boolean()) {
    r.speculative = value->get<bool>();
    return;
  }
  if (!value->is_object()) {
    return fields.refuse_kind("speculative", *value, "true, false or an object");
  }
  JsonFields inner(*value, "speculative.", &kSeedDialect);
  read_drafters(inner, o);
  r.speculative = true;
  for (const std::string_view name : {"rule", "width"}) {
    api::read_field(inner, field_named(speculation_fields(), name), r);
  }
  api::read_fields(inner, shape_fields(), r.draft);
  inner.fail(check_branches(r.rule, r.draft));
  warn_of_unknown(inner, warnings);
  api::take_error(fields, inner);
}

// The value of one option, in effect; of the kind of its default.
Json read_option(JsonFields& fields, const SeedOption& option) {
  const auto read = [&](auto value) -> Json {
    if constexpr (std::is_same_v<decltype(value), std::string_view>) {
      std::string text(value);
      fields.text(option.key, text);
      return text;
    } else if constexpr (std::is_same_v<decltype(value), bool>) {
      fields.boolean(option.key, value);
      return value;
    } else if constexpr (std::is_same_v<decltype(value), double>) {
      fields.number(option.key, value, option.range);
      return value;
    } else {
      constexpr std::int64_t kMin = std::numeric_limits<std::int32_t>::min();
      fields.integer(option.key, value, std::max(whole_limit(option.range.min), kMin),
                     std::min(whole_limit(option.range.max), kMaxInt32));
      return value;
    }
  };
  const Json otherwise = std::visit([](auto value) { return Json(value); }, option.otherwise);
  Json value = std::visit(read, option.otherwise);
  if (!option.only.empty() && value != otherwise) {
    fields.fail(refused(std::string(option.key), option.only));
  }
  return value;
}

void read_options(JsonFields& fields, RequestOptions& o, std::vector<std::string>& warnings) {
  for (const SeedOption& option : seed_options()) {
    o.values[std::string(option.key)] = read_option(fields, option);
  }
  const auto at_least = [&o](const char* key, std::int64_t min) {
    Json& value = o.values[key];
    value = std::max(value.get<std::int64_t>(), min);
  };
  at_least("n_predict", -1);
  at_least("n_keep", -1);
  at_least("n_probs", 0);
  if (o.n_probs() > kMaxLogprobs) {
    warnings.push_back("n_probs is " + std::to_string(o.n_probs()) + "; " +
                       std::to_string(kMaxLogprobs) + " is the most there is, and is used");
    o.values["n_probs"] = kMaxLogprobs;
  }
  const float penalty = static_cast<float>(o.values["repeat_penalty"].get<double>());
  if (!(penalty > 0.0f && std::isfinite(1.0f / penalty))) {
    fields.fail(refused("repeat_penalty", "must be above 0 (1 is off)"));
  }
  fields.any("stream");  // synchronous calls never stream, asynchronous ones always do
  fields.any("__debug");
  // The seed kept it in 32 bits, unsigned, with all of them set for "a new one".
  std::int64_t seed = -1;
  fields.integer("seed", seed, std::numeric_limits<std::int32_t>::min(),
                 std::numeric_limits<std::uint32_t>::max());
  const std::uint32_t bits = static_cast<std::uint32_t>(seed);
  if (bits != std::numeric_limits<std::uint32_t>::max()) o.seed = bits;
}

void warn_of_mirostat(const RequestOptions& o, std::vector<std::string>& warnings) {
  if (o.values["mirostat"] == 0) return;
  if (o.values["temperature"] <= 0.0) {
    warnings.emplace_back("mirostat has no effect at temperature 0");
  } else if (o.values["repeat_penalty"] != 1.0 || o.values["presence_penalty"] != 0.0 ||
             o.values["frequency_penalty"] != 0.0) {
    warnings.emplace_back(
        "repeat_penalty, presence_penalty and frequency_penalty have no effect with mirostat");
  }
}

// What the request leaves open comes from the cmd.
Json merge(const Json& request, const Json& defaults) {
  Json merged = defaults;
  for (const auto& [key, value] : request.items()) {
    Json* known = merged.contains(key) ? &merged[key] : nullptr;
    if (known == nullptr) {
      merged[key] = value;
    } else if (key == "speculative" && known->is_object() && value.is_object()) {
      for (const auto& [inner, inner_value] : value.items()) (*known)[inner] = inner_value;
    } else if (key == "speculative" && known->is_object() && value == Json(true)) {
      // The cmd's object means true, and says how.
    } else if (!value.is_null()) {
      *known = value;
    }
  }
  return merged;
}

}  // namespace

ParsedRequest parse_request(const Json& request, const RequestDefaults& defaults) {
  ParsedRequest parsed;
  if (!request.is_object()) {
    parsed.refusal = no_object(request);
    return parsed;
  }
  const Json merged = merge(request, defaults.options);
  JsonFields fields(merged, "", &kSeedDialect);
  RequestOptions& o = parsed.options;
  o.request.prompt = {std::string()};
  o.request.speculative = false;
  o.request.width = static_cast<std::int32_t>(defaults.width.value_or(kAutoWidth));
  read_prompt(fields, o);
  read_options(fields, o, parsed.warnings);
  fields.texts("stop", o.request.stop);
  std::erase(o.request.stop, "");  // the seed passed it over; it would end every text at once
  read_logit_bias(fields, o, parsed.warnings);
  read_speculative(fields, o, parsed.warnings);
  warn_of_mirostat(o, parsed.warnings);
  warn_of_unknown(fields, parsed.warnings);
  parsed.refusal = fields.finish();
  return parsed;
}

void RequestDefaults::update(const RequestDefaults& newer) {
  for (const auto& [key, value] : newer.options.items()) options[key] = value;
  if (newer.width) width = newer.width;
}

RequestDefaults take_defaults(JsonFields& cmd, std::vector<std::string>& warnings) {
  RequestDefaults defaults;
  std::int64_t n_draft = -1;
  // A step holds the guesses and the target's own last token.
  const std::int64_t widest = whole_limit(field_named(speculation_fields(), "width").range.max);
  cmd.integer("n_draft", n_draft, 0, widest - 1);
  if (n_draft >= 0) defaults.width = n_draft + 1;
  const auto take = [&](std::string_view key, std::string_view option) {
    const Json* value = cmd.any(key);
    if (value != nullptr) defaults.options[std::string(option)] = *value;
  };
  take("temp", "temperature");
  for (const SeedOption& option : seed_options()) take(option.key, option.key);
  for (const std::string_view key : kCmdKeys) take(key, key);
  ParsedRequest parsed = parse_request(Json::object(), defaults);
  for (std::string& text : parsed.warnings) warnings.push_back(std::move(text));
  cmd.take(parsed.refusal);
  return defaults;
}

}  // namespace outrider::rpcserver
